"""The two shapes of lines that circulate in articles, as long and as mixed as people feed them."""

import parsers


def test_full_lines_are_not_taken_for_broken_ones(tmp_path):
    lines = []
    for number in range(60):
        clock = f"10:{number // 6:02d}:{number % 6 * 10:02d}"
        lines += [
            f"INFO 05-01 {clock} Running 128 requests, {number} sequences in the swap out queue",
            f"WARN 05-01 {clock} Sequence {number} is preempted from GPU to CPU",
        ]
    (tmp_path / "server.log").write_text("\n".join(lines) + "\n")
    evidence = parsers.read([str(tmp_path)])
    kinds = evidence.events["kind"].to_list()
    assert kinds == ["blog_running_swapped", "blog_preempted"] * 60
    assert evidence.coverage[0].lines == evidence.coverage[0].matched == 120
    assert evidence.events["fields"][-1].count('"59"') == 1
