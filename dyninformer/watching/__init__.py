"""What is asked of the API server, and what is made of its answers.

From the top: `reflector` is the thread, `session` carries out what `protocol` decides on `states`
(`missing` and `reasons` beside it); `cutting` and `decode` turn bytes into answers; `client`,
`sockets` and `background` make the `requests`; `config` finds the settings.
"""
