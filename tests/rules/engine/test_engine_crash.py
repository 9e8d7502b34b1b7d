"""ENG502 engine-crash: the cases of engine_crash.yaml."""


def test_engine_crash(rule_case):
    rule_case.holds()
