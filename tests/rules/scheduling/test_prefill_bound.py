"""SCH303 prefill-bound: the cases of prefill_bound.yaml."""


def test_prefill_bound(rule_case):
    rule_case.holds()
