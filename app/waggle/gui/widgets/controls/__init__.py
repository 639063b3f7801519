"""Controls: buttons, inputs, the week schedule, the pause menu."""
