"""What the analysis says of a plan equals what counting paths by hand gives."""

from tests.support.bounds import wrong_bounds


def test_uses_rounding_and_slack_have_their_closed_forms() -> None:
    assert wrong_bounds() == []
