"""Oracles of topic arithmetic: true and false keys that were computed by hand, and texts that they do not understand."""

import pytest

from waggle_lab.truth.interface import UnreadableQuestion
from waggle_lab.truth.oracles import oracles

BASIC = "Calculate {}."
CHAIN = "State the final answer to the following arithmetic problem: {} ="
DECIMAL = (
    "Please solve this problem to a maximum of {} significant digits, rounding up from the half. "
    "Only reply with the final value.\n{} = ?"
)
POWER = (
    "Your task is to compute an exponentiation of a number.\n\nCompute {}. Return your final answer correct to 3 significant "
    "figures.\nProvide your answer in scientific notation using 'e' notation (e.g., 1.23e+4).\n"
)
PRODUCT = "Solve the following multiplication: {}. Give only the result as your final answer."
BITS = "How many 1 bits are there in the binary representation of the number {}?"
GCD = "Find the Greatest Common Divisor (GCD) of these numbers: {}. Give only the GCD as your final answer."
LCM = "Find the Least Common Multiple (LCM) of these numbers: {}"
FACTORS = "Find the prime factorization of {}. Write the factors separated by × (Example: for 12 the answer would be: 2 × 2 × 3)"
FRACTION = "Simplify the fraction {} to its lowest terms. Give only the simplified fraction as your final answer."
DICE = (
    "I have these dice: {}. What are the odds of rolling {} or higher? (Assume that all dice are rolled at once, and that '1d6' "
    "represents one roll of a 6-sided dice.) Please respond with a reduced fraction representing the probability [ex., 1/60]."
)
SIZES = (
    "Your task is to pick the largest/smallest number out of several options.\n\nYour output should be only the number of "
    "interest.\n\nNow, pick the {} number of the following candidates: {}\n"
)
LEGS = (
    "Your task is to count how many legs there are in total when given a list of animals.\n\n"
    "Now, how many legs are there in total if you have {}?\n"
)
LEAP = "Is {} a leap year? Answer with Yes or No."
IN_DAYS = "If today is {}, what day of the week will it be in {} days? Reply with just the weekday name."
AGO = "Starting from {}, which weekday was it {} days before? Reply with just the weekday name."
OF_DATE = "Name the day of the week for {}. Reply with just the weekday name."
BY_FIRST = "In a year where {} is January 1st, name the weekday of {}. Name the day of the week in full."
RECURRING = (
    "Determine the day of the month for the {} in {}. Give the count numerically. "
    "Answer with -1 if the ordinal does not exist in the month."
)
OCCURRENCES = "Count the occurrences of {} from {} to {} (including both start and end dates). Answer with a number."
BUSINESS = (
    "How many business days (Monday-Friday) are there from {} to {} (inclusive of both dates)? Respond with just the number."
)
ELAPSED = "How much time elapsed from {} to {}? Give your answer in {}."
FLIGHT = "A flight departed at {} and arrived at {}. How long was the flight? Answer in {}."

CASES = [  # dataset, question, true key, false key
    ("basic_arithmetic", BASIC.format("3 + 4 * 0"), "3", "0"),
    ("basic_arithmetic", BASIC.format("6 - 10 * 8"), "-74", "-32"),
    ("basic_arithmetic", BASIC.format("-( 2 - -5 ) * 3"), "-21", "21"),
    ("basic_arithmetic", BASIC.format("( 7 + 5 ) / -4"), "-3", "3"),
    ("chain_sum", CHAIN.format("12 - 5 + 3"), "10", "4"),
    ("decimal_chain_sum", CHAIN.format("1.5 + 0.25 - 2.00"), "-0.25", "0.25"),
    ("decimal_arithmetic", DECIMAL.format(4, "1.1*9.5"), "10.45", "10.44"),
    ("decimal_arithmetic", DECIMAL.format(4, "5.0/3.2"), "1.563", "1.562"),  # 1.5625
    ("decimal_arithmetic", DECIMAL.format(4, "2.0/(3.0-0.0)"), "0.6667", "0.6666"),
    ("products", PRODUCT.format("12 * 11 * 2"), "264", "26"),
    ("power_function", POWER.format("2.5^2"), "6.25e+0", "6.26e+0"),
    ("power_function", POWER.format("-2.5^2"), "-6.25e+0", "6.25e+0"),
    ("power_function", POWER.format("2.0^-3"), "1.25e-1", "8.00e+0"),
    ("count_bits", BITS.format(13), "3", "4"),
    ("gcd", GCD.format("12, 18, 30"), "6", "3"),
    ("gcd", GCD.format("12, 18, 30"), "6", "12"),
    ("lcm", LCM.format("4, 6"), "12", "24"),
    ("lcm", LCM.format("4, 6"), "12", "6"),
    ("prime_factorization", FACTORS.format(36), "2 × 2 × 3 × 3", "4 × 9"),
    ("prime_factorization", FACTORS.format(36), "3 × 2 × 3 × 2", "2 × 3 × 3"),
    ("fraction_simplification", FRACTION.format("6/9"), "2/3", "6/9"),
    ("fraction_simplification", FRACTION.format("$\\frac{6}{9}$"), "$\\frac{2}{3}$", "2/3"),
    ("fraction_simplification", FRACTION.format("$\\dfrac{8}{4}$"), "$\\dfrac{2}{1}$", "$\\dfrac{4}{2}$"),
    ("dice", DICE.format("1d6, 1d6", 11), "1/12", "1/6"),
    ("dice", DICE.format("1d4, 1d2", 2), "1/1", "8/8"),
    ("number_format", SIZES.format("smallest", "1,234.5 1.2e+03 1300.000000"), "1200.0", "1234.5"),
    ("number_format", SIZES.format("largest", "1,234.5 1.2e+03 1300.000000"), "1300.0000000001", "1300.01"),
    ("leg_counting", LEGS.format("3 dogs, 1 spider, 2 praying mantiss"), "32", "34"),
    ("leg_counting", LEGS.format("2 sea slugs, 1 chicken"), "2", "4"),
    ("calendar_arithmetic", LEAP.format(1900), "No", "Yes"),
    ("calendar_arithmetic", LEAP.format(2000), "Yes", "No"),
    ("calendar_arithmetic", IN_DAYS.format("Friday, July 15, 2022", 10), "Monday", "Tuesday"),
    ("calendar_arithmetic", AGO.format("Friday, July 15, 2022", 10), "Tuesday", "Monday"),
    ("calendar_arithmetic", OF_DATE.format("07/15/2022"), "Friday", "Saturday"),
    ("calendar_arithmetic", BY_FIRST.format("Sunday", "February 28"), "Tuesday", "Monday"),
    ("calendar_arithmetic", RECURRING.format("third Tuesday", "July 2022"), "19", "12"),
    ("calendar_arithmetic", RECURRING.format("last Sunday", "July 2022"), "31", "24"),
    ("calendar_arithmetic", OCCURRENCES.format("Friday", "Friday, July 15", "Friday, July 29, 2022"), "3", "2"),
    ("calendar_arithmetic", BUSINESS.format("Friday, July 15, 2022", "Monday, July 18, 2022"), "2", "4"),
    ("time_intervals", ELAPSED.format("02:05", "13:06", "HH:MM"), "11:01", "11:00"),
    ("time_intervals", ELAPSED.format("18:02:35.704", "18:03:06.006", "HH:MM:SS.mmm"), "00:00:30.302", "00:00:30.301"),
    ("time_intervals", FLIGHT.format("Monday, January 15, 2024", "Thursday, February 01, 2024", "D days"), "17 days", "16 days"),
    (
        "time_intervals",
        FLIGHT.format("2024-01-15 (Monday) 06:07:04 -1200", "2024-01-16 (Tuesday) 06:08:01 -1000", "D days, HH:MM:SS"),
        "0 days, 22:00:57",
        "1 days, 00:00:00",
    ),
    (
        "time_intervals",
        FLIGHT.format("15 January 2024, 14:30", "16 January 2024, 15:31", "D days, HH:MM"),
        "1 days, 01:01",
        "1 days, 01:00",
    ),
]
WITHOUT_TRUTH = [  # questions that no answer fits
    ("basic_arithmetic", BASIC.format("3 / ( 2 - 2 )"), "0"),
    ("calendar_arithmetic", BUSINESS.format("Friday, December 30, 2022", "Sunday, January 1, 2022"), "1"),
    ("calendar_arithmetic", IN_DAYS.format("Friday, July 16, 2022", 7), "Friday"),
    ("calendar_arithmetic", BY_FIRST.format("Sunday", "March 5"), "Sunday"),
    ("time_intervals", ELAPSED.format("13:06", "02:05", "HH:MM"), "-11:59"),
    ("time_intervals", FLIGHT.format("2024-01-16 14:30 +0000", "2024-01-16 14:31 +0100", "D days, HH:MM"), "-1 days, 23:01"),
]


@pytest.mark.parametrize(("dataset", "question", "true", "false"), CASES)
def test_a_true_key_is_true_and_a_false_one_false(dataset, question, true, false):
    oracle = oracles()[dataset]
    assert oracle(question, true)
    assert not oracle(question, false)


@pytest.mark.parametrize(("dataset", "question", "key"), WITHOUT_TRUTH)
def test_no_key_of_a_question_without_a_true_answer_is_true(dataset, question, key):
    assert not oracles()[dataset](question, key)


@pytest.mark.parametrize("dataset", sorted({dataset for dataset, *_ in CASES}))
@pytest.mark.parametrize("change", ["{} Please.", "Hello! {}", "What is 1 + 1?"])
def test_another_text_is_not_understood(dataset, change):
    question = next(case[1] for case in CASES if case[0] == dataset)
    with pytest.raises(UnreadableQuestion):
        oracles()[dataset](change.format(question.strip()), "1")


@pytest.mark.parametrize("dataset", sorted({dataset for dataset, *_ in CASES}))
@pytest.mark.parametrize("key", ["", "The answer is 3", "3 or 4", "None", "[]"])
def test_what_is_no_answer_is_false(dataset, key):
    question = next(case[1] for case in CASES if case[0] == dataset)
    assert not oracles()[dataset](question, key)
