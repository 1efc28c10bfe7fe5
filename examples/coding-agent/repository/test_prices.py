import unittest

import prices


class Prices(unittest.TestCase):
    def test_a_total_has_all_prices(self):
        self.assertEqual(prices.total([100, 250, 5]), 355)

    def test_a_tax_is_rounded(self):
        self.assertEqual(prices.with_tax(199, 0.19), 237)

    def test_a_price_has_its_currency(self):
        self.assertEqual(prices.shown(123450), "1234.50 EUR")


if __name__ == "__main__":
    unittest.main()
