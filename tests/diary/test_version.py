import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.diary import Version


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.11.2", (0, 11, 2)),
        ("v0.8.5.post1", (0, 8, 5)),
        ("0.27", (0, 27, 0)),
        ("0.9.2rc2", (0, 9, 2)),
        ("0.10.1.1", (0, 10, 1)),
        ("0.12.0rc1.dev10+g0f3b9a2.cu129", (0, 12, 0)),
        (" 0.6.3 ", (0, 6, 3)),
    ],
)
def test_release_numbers(text, numbers):
    version = Version.parse(text)
    assert (version.major, version.minor, version.patch) == numbers
    assert str(version) == text.strip()


@pytest.mark.parametrize("text", ["", "dev", "1", "v", "0.", "９.８", "99999999.1", "latest"])
def test_what_is_no_release_number(text):
    assert Version.parse(text) is None


def test_order_is_by_number_and_ignores_the_suffix():
    assert Version.parse("0.9.2") < Version.parse("0.10.0") < Version.parse("0.11.0rc1")
    assert Version.parse("0.11.0rc1") == Version.parse("0.11.0")


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    version = Version.parse(text)
    assert version is None or version.major >= 0
