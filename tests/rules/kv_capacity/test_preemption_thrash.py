"""KV202 preemption-thrash: the cases of preemption_thrash.yaml."""


def test_preemption_thrash(rule_case):
    rule_case.holds()
