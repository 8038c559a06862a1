# The manual page and the completion that packagers install are those of the option table:
#   mha-inspect help man > src/cli/mha-inspect.1
#   mha-inspect help completion > src/cli/mha-inspect.bash
"$MHA" help man | diff - "$MHA_ROOT/src/cli/mha-inspect.1" &&
    "$MHA" help completion | diff - "$MHA_ROOT/src/cli/mha-inspect.bash"
