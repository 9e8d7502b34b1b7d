"""SCH304 replica-imbalance: the cases of replica_imbalance.yaml."""


def test_replica_imbalance(rule_case):
    rule_case.holds()
