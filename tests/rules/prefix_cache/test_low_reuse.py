"""PC108 low-reuse-workload: the cases of low_reuse.yaml."""


def test_low_reuse(rule_case):
    rule_case.holds()
