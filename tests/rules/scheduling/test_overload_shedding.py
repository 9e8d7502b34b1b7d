"""SCH305 overload-shedding: the cases of overload_shedding.yaml."""


def test_overload_shedding(rule_case):
    rule_case.holds()
