"""A longer context never raises a bound, whatever kind of layers the model has."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from forensics.capacity.plan import ceiling_for
from forensics.capacity.wanted import Wanted

MODELS = ["mistralai/Mistral-7B-v0.1", "meta-llama/Meta-Llama-3-8B", "google/gemma-3-27b-it"]


@settings(max_examples=60)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(["A100-80GB", "H100", "L4"]),
    st.integers(2_000, 12_000),
    st.integers(1, 8_000),
    st.sampled_from([None, 100.0, 1_000.0]),
)
@example("google/gemma-3-27b-it", "A100-80GB", 2_001, 1, None)  # within one block
def test_a_longer_context_never_raises_a_bound(model, gpu, context, more, prefix):
    short, long = (
        {
            bound.name: bound.value
            for bound in ceiling_for(
                Wanted(gpu=gpu, model=model, context=float(tokens), shared_prefix=prefix)
            ).bounds
        }
        for tokens in (context, context + more)
    )
    for name in short.keys() & long.keys():
        if short[name] is not None and long[name] is not None:
            assert long[name] <= short[name] * (1 + 1e-9), name


def test_layers_that_all_slide_hold_no_more_than_their_window():
    full = ceiling_for(Wanted(gpu="A100-80GB", model=MODELS[0], context=4_096.0))
    far = ceiling_for(Wanted(gpu="A100-80GB", model=MODELS[0], context=32_768.0))
    safe = [next(b.value for b in plan.bounds if b.name == "B_safe") for plan in (full, far)]
    assert safe[1] == pytest.approx(safe[0], rel=0.35)
