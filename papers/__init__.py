"""The papers that Cloister builds on, evaluated again: ``python -m papers fastlloyd | secfc | feddp``."""
