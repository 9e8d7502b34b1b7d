"""PC102 eviction-pressure: the cases of eviction_pressure.yaml."""


def test_eviction_pressure(rule_case):
    rule_case.holds()
