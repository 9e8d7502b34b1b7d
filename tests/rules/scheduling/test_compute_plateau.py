"""SCH302 compute-plateau: the cases of compute_plateau.yaml."""


def test_compute_plateau(rule_case):
    rule_case.holds()
