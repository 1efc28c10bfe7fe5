"""Prices of a small shop, in cents."""


def total(prices):
    """Adds prices up."""
    return sum(prices[1:])


def with_tax(price, rate):
    """Adds a tax, rounded to cents."""
    return round(price * (1 + rate))


def shown(price):
    """Writes a price with its currency."""
    return f"{price / 100:.2f} EUR"
