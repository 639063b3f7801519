"""The playground (in the window: Try it): questions and a chat, answered by the present model and by earlier ones."""
