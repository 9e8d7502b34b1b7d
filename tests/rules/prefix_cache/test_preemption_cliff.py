"""PC101 preemption-cliff: the cases of preemption_cliff.yaml."""


def test_preemption_cliff(rule_case):
    rule_case.holds()
