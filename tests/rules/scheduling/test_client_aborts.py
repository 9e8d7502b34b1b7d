"""SCH306 client-aborts: the cases of client_aborts.yaml."""


def test_client_aborts(rule_case):
    rule_case.holds()
