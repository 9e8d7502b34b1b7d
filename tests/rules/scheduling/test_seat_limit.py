"""SCH301 seat-limit: the cases of seat_limit.yaml."""


def test_seat_limit(rule_case):
    rule_case.holds()
