"""ENG501 engine-stall: the cases of engine_stall.yaml."""


def test_engine_stall(rule_case):
    rule_case.holds()
