# A family that is not built in, described on the command line.
cp -r "$MHA_ROOT/tests/data/own" .
own=own
echo "== without its description"
"$MHA" info "$own" -q 2>&1 | sed 's/there are .*/there are …/' | cut -c 1-200
echo "== with it"
"$MHA" info "$own" --family "$own/own.family" -q | grep -E "^(family|format|layers|heads) "
"$MHA" heads "$own" --family "$own/own.family" --ids 1,2,3,4 --format csv -q | head -2 | cut -d, -f 1-4
"$MHA" run "$own" --family "$own/own.family" --ids 1,2,3 --top 1 --format csv -q | cut -d, -f 1-4
"$MHA" importance "$own" --family "$own/own.family" --ids 1,2,3,4 --format csv -q -o scores.csv && wc -l <scores.csv
"$MHA" prune "$own" --family "$own/own.family" --heads 0.1 -q -o sliced | grep heads
"$MHA" heads sliced --family "$own/own.family" --ids 1,2,3,4 --format csv -q | wc -l
echo "== what it refuses"
try() {
    "$MHA" info "$own" --family "$1" -q
    echo "exit code $?"
}
try nothing.family
: >empty.family && try empty.family
printf 'family x\0y\n' >nul.family && try nul.family
sed 's/places.weight/plaices.weight/' "$own/own.family" >name.family && try name.family
sed 's/X <- add B/X <- plus B/' "$own/own.family" >op.family && try op.family
sed 's/  D width/  D breadth/' "$own/own.family" >key.family && try key.family
sed '/linear out/d' "$own/own.family" >slot.family && try slot.family
