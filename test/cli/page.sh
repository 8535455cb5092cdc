#!/usr/bin/env bash
# The page of `inspect --html`: one well-formed file that loads nothing, whose document says what report.json says; what
# names from a model may hold; a comparison, and files that are none of a page's.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.bash"
model=$top/demo/digits.onnx
cd "$work" || exit 3

# --- the page, and the package that it tells of
expect 0 '' compile "$model" -o package --html page.html --quiet
expect 0 '' inspect "$model" --html page.json
expect 0 '' inspect "$model" --html compared.html --compare page.html
expect 0 '' inspect "$model" --target cortex-m4 --html small.json
cat > odd.txt <<'TEXT'
func @main(%"</script><b>é\n": f32[1, 8] , %b: f32[1, 8]) {
  %s = add(%"</script><b>é\n", %b)
  %t = nn.relu(%s)
  %u = add(%t, %s)
  return %u
}
TEXT
expect 0 '' inspect odd.txt --html odd.html
check "pages and documents" python3 - <<'PY'
import html.parser, json, re

class Page(html.parser.HTMLParser):
    VOID = {"meta", "input", "br", "link", "img"}

    def __init__(self, path):
        super().__init__()
        self.open, self.texts, self.path = [], {}, path
        self.feed(open(path, encoding="utf-8").read())
        self.close()
        assert not self.open, (path, "left open", self.open)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        assert not {"src", "data", "action", "srcset"} & names.keys() and tag != "link", (self.path, tag, names)
        assert names.get("href", "#").startswith("#"), names
        self.id = names.get("id")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (self.path, "closes", tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            if self.id:
                self.texts[self.id] = self.texts.get(self.id, "") + data
            else:
                assert not re.search(r"@import|url\((?!#)|\bfetch\(|XMLHttpRequest|importScripts", data), self.path

page, compared, odd = Page("page.html"), Page("compared.html"), Page("odd.html")
document, alone = json.loads(page.texts["document"]), json.load(open("page.json"))
report = json.load(open("package/report.json"))
for d in document, alone:
    assert (d["generator"], d["kind"], d["format"]) == ("lathe", "page", 1)
    assert d["verdict"]["workspace_bytes"] == report["workspace_bytes"] == d["memory"]["bytes"]
    assert d["verdict"]["constant_bytes"] == report["constant_bytes"]
    assert [k["kernel"] for k in d["kernels"]] == [o["kernel"] for o in report["operators"]]
    assert [k["layer"] for k in d["kernels"]] == [o["layer"] for o in report["operators"]]
    assert max(d["memory"]["used"]) == d["memory"]["used"][d["memory"]["peak_layer"]] <= d["memory"]["bytes"]
    assert d["timeline"]["unit"] == "cycles" and abs(sum(t[2] for t in d["timeline"]["tasks"]) - d["timeline"]["used"]) < 1
assert document["verdict"].pop("model_sha256") == report["proof"]["model_sha256"]
assert document == alone
nodes = document["model"]["nodes"]
assert [n["op"] for n in nodes][:3] == ["Mul", "Conv", "Relu"], nodes
assert [[nodes[n]["name"] for n in k["nodes"]] for k in document["kernels"]][:3] == [["scale"], ["conv1", "relu1"], ["pool1"]]
assert any("parallel" in c["loops"] for c in document["code"]) and all("static int32_t" in c["c"] for c in document["code"])
assert json.loads(compared.texts["other"]) == json.loads(page.texts["document"])
small = json.load(open("small.json"))
assert small["timeline"]["unit"] == "instructions" and small["verdict"]["stack_bytes"] > 0
assert sum(k["estimate"]["amount"] for k in small["kernels"]) < small["verdict"]["instructions"]
name = "</script><b>\u00e9\n"
assert json.loads(odd.texts["document"])["values"][0]["name"] == name
assert "</script><b>" not in open("odd.html", encoding="utf-8").read()
PY

# --- a limit of memory, what quantising cost
expect 0 '' inspect "$model" --target cortex-m4 --ram 64K --html limit.json
check "the limit" grep -q '"ram_limit": 65536' limit.json
echo '{"values": [], "layers": [], "nodes": 1}' > loss.json
expect 0 '' inspect "$model" --html loss.html --loss loss.json
check "what quantising cost is in the page" grep -q 'id="loss"' loss.html

# --- refusals
expect_error 1 'is not a report page' inspect "$model" --html x.html --compare "$model"
expect_error 1 'is not a report page' inspect "$model" --html x.html --compare package/report.json
expect_error 1 'is not a result of lathe quantize' inspect "$model" --html x.html --loss page.json
expect_error 2 'is compiled already' inspect package --html x.html
expect_error 2 'compare needs --html' inspect "$model" --compare page.html
[ ! -e x.html ] && good || bad "a page was written all the same"

# --- lathe view: a model that compiles, one that does not, and who may ask
printf 'func @main(%%x: f32[n, 4]) {\n  %%y = nn.relu(%%x)\n  return %%y\n}\n' > open.txt
sed 's/GlobalAveragePool/GlobalAveragePull/g; s/MaxPool/MaxPuul/g' "$model" > odd.onnx # operators that nobody knows
for file in "$model" open.txt odd.onnx; do
    "$lathe" view "$file" --workers 1 > said 2> faults &
    server=$!
    for _ in $(seq 300); do [ -s said ] || [ -s faults ] || sleep 0.1; done
    check "view of ${file##*/}" python3 - "$file" <<'PY'
import http.client, json, re, socket, sys
port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", open("said").read())[1])

def ask(method, path, host=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, headers={"Host": host} if host else {})
    r = c.getresponse()
    return r.status, r.getheader("Content-Type"), r.read().decode()

silent = socket.create_connection(("127.0.0.1", port))  # a browser opens some that it does not use
status, kind, page = ask("GET", "/")
assert status == 200 and kind.startswith("text/html") and page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
document = json.loads(ask("GET", "/document.json")[2])
assert ask("HEAD", "/")[::2] == (200, "") and ask("GET", "/?x")[0] == 200 and ask("GET", "/no")[0] == 404
assert ask("POST", "/")[0] == 405 and ask("GET", "/", "evil.example")[0] == 403 and ask("GET", "/", "localhost:1")[0] == 200
if sys.argv[1] == "open.txt":
    assert "kernels" not in document and "no upper bound" in document["problems"][0]["text"], document
    assert document["model"]["values"][0]["type"] == "f32[n, 4]"
elif sys.argv[1] == "odd.onnx":
    why = {n["unread"]: n["op"] for n in document["model"]["nodes"] if "unread" in n}
    assert why["unknown operator"] == "MaxPuul" and "not read" in why and "MaxPuul" in document["problems"][0]["text"], why
    assert sum("unread" not in n for n in document["model"]["nodes"]) > 2, document["model"]["nodes"]
else:
    assert len(document["kernels"]) == 9
silent.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 9000)
assert b"431" in silent.recv(100)
PY
    kill $server
    wait $server 2> /dev/null
    [ ! -s faults ] && good || bad "view says: $(cat faults)"
done
expect_error 1 'No such file' view no.onnx
finish
