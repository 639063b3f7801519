"""What a person presses, types in or sets: buttons, inputs, the week, the pause menu."""
