"""What staff do with definitions: compare, publish, roll back, carry over."""
