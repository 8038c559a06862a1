# Contacts of residues: every format, residue labels, and what is refused. What the numbers are is
# tested in tests/oracle.
cp -r "$MHA_ROOT/tests/data/models/esm-contacts" esm && cp -r "$MHA_ROOT/tests/data/models/bert-mlm" bert
contacts() { "$MHA" attribute esm --method contacts "$@"; }
kind() {
    head -c 4 "$1" | tr -d '\211\r\n' # PNG, %PDF, <svg or <?xm
    echo " $1"
}
echo "== pairs"
contacts --file esm/two.fasta --format csv | awk -F, -v OFS=, 'NR > 1 { $6 = sprintf("%.3f", $6) } NR < 5 || NR > 75'
contacts --file esm/two.fasta --top 2 --format csv | cut -d, -f 1-5
contacts --text MKTAYI --format json | grep -cE '"schema": "mha-inspect/attribute/1"|"method": "contacts"'
echo "== arrays"
contacts --file esm/two.fasta -o two/ && ls two
contacts --file esm/two.fasta --threads 1 -o one/ && cmp one/0000.npz two/0000.npz
contacts --text MKTAYI -o one.npy && kind one.npy
contacts --ids 0,5,9,14,2 -o one.safetensors && kind one.safetensors
echo "== figures"
contacts --text MKTAYIAKQRQ -o map.svg --width 120 --caption map.txt && kind map.svg && cat map.txt
tr '<' '\n' <map.svg | sed -n 's/^[^>]*>\([^>]*\)$/\1/p' | grep -xE '[A-Z]|residue|contact probability' | sort | uniq -c
contacts --text MKTAYIAKQRQ -o map.png && kind map.png
contacts --text MKTAYIAKQRQ -o map.pdf && kind map.pdf
contacts --text MKTAYIAKQRQ --exact -o exact.png && kind exact.png
contacts --text MKTAYI --dry-run | head -2
echo "== refused"
fails() {
    "$MHA" attribute "$@"
    echo "exit $?"
}
fails bert --ids 2,5,3 --method contacts
fails esm --text MKTAYI
fails esm --text MKTAYI --method contcts
fails esm --text MKTAYI --no-special --method contacts
fails esm --ids 0,2 --method contacts
fails esm --file esm/two.fasta --method contacts -o both.png
fails esm --file esm/two.fasta --method contacts -o both.npz
fails esm --text MKTAYI --method contacts -o map.png
fails esm --text MKTAYI --method contacts -o two/ --format csv
fails esm --text MKTAYI --method contacts --memory 100
