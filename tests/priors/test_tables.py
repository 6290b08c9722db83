"""Tables over sigma: linear in log sigma, constant beyond their ends; a card that makes no sense is refused."""

import numpy as np
import pytest

from heatprior import InvalidInputError, PriorFileError
from heatprior.priors.schedules import TableOverSigma, read_table

TABLE = TableOverSigma((0.01, 0.1), ((1.0, 3.0), (0.0, -1.0)))


def test_columns_are_linear_in_log_sigma_and_constant_beyond_the_ends():
    first, second = TABLE.at(np.array([[0.0, 0.01], [np.sqrt(0.001), 5.0]]))
    np.testing.assert_allclose(first, [[1.0, 1.0], [2.0, 3.0]])
    np.testing.assert_allclose(second, [[0.0, 0.0], [-0.5, -1.0]], atol=1e-15)
    assert not np.isclose(TABLE.at(0.055)[0], 2.0)  # which is the middle in sigma itself


@pytest.mark.parametrize(
    ("sigmas", "columns", "why"),
    [
        ((0.1, 0.1), ((1.0, 2.0),), "ascending"),
        ((0.0, 0.1), ((1.0, 2.0),), "positive"),
        ((0.1, np.inf), ((1.0, 2.0),), "finite"),
        ((0.1,), ((np.nan,),), "finite"),
        ((0.1, 0.2), ((1.0,),), "same length"),
        ((), ((),), "same length"),
        (("a",), ((1.0,),), "lists of numbers"),
    ],
)
def test_what_is_no_table_is_refused(sigmas, columns, why):
    with pytest.raises(InvalidInputError, match=why):
        TableOverSigma(sigmas, columns)


def test_a_table_is_read_from_an_entry_of_a_card_or_a_section_of_it():
    names, columns = ("sigmas", "a"), {"sigmas": [0.1], "a": [2.0]}

    def make(sigmas, *values):
        return TableOverSigma(sigmas, values)

    expected = TableOverSigma((0.1,), ((2.0,),))
    assert read_table({"entry": columns}, "entry", names, make) == expected
    assert read_table({"entry": {"hqs": columns}}, "entry", names, make, section="hqs") == expected
    assert read_table({}, "entry", names, make) is None
    assert read_table({"entry": {"hqs": columns}}, "entry", names, make, section="eb") is None
    for wrong in ({"sigmas": [0.1]}, {"sigmas": 0.1, "a": [1.0]}, 3, {"sigmas": [10**400], "a": [1.0]}):
        with pytest.raises(PriorFileError, match='"entry" of the prior\'s card'):
            read_table({"entry": wrong}, "entry", names, make)
