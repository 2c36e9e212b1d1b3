"""The files of deploy/: systemd takes the unit, Prometheus the rules; a node has the metrics.

The image, its health check and compose.yml are in agreement with what `domkl mesh init` writes.
tools/dockerfile.py tries the steps of the image; it needs root, and is run by hand.
"""

import asyncio
import configparser
import importlib.util
import json
import re
import shlex
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from mesh_node import made, mesh_config, prepared, solo_folder, until
from prometheus_client import generate_latest

from domkl.cli.main import main, parser
from domkl.mesh.config.folder import init_mesh, read_mesh
from domkl.mesh.node.metrics import registry_of

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "domkl-node@.service"
PROMETHEUS = DEPLOY / "prometheus"
DASHBOARD = DEPLOY / "grafana/dashboards/domkl.json"


def loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dockerfile = loaded(ROOT / "tools/dockerfile.py")
healthy = loaded(DEPLOY / "healthy.py")


def test_the_readme_names_every_file_and_its_links_lead_somewhere():
    text = (DEPLOY / "README.md").read_text()
    for link in re.findall(r"\]\(([^)#]+)", text):
        assert (DEPLOY / link).exists(), link
    named = [each.rstrip("/") for each in re.findall(r"`([\w@./-]+)`", text)]
    files = {path.relative_to(DEPLOY) for path in DEPLOY.rglob("*") if path.is_file()}
    local = {path for path in files if path.parts[0] in ("mesh", "state", "__pycache__", ".env")}
    named_there = {path for path in files for name in named if path.is_relative_to(name)}
    assert files - local - named_there - {Path("README.md")} == set()


def test_the_unit_starts_a_node_and_reloads_by_sighup():
    unit = configparser.RawConfigParser(strict=True)
    unit.optionxform = str
    unit.read(UNIT)
    service = unit["Service"]
    assert service["ExecStart"] == "/opt/domkl/bin/domkl node /var/lib/domkl/%i $DOMKL_OPTIONS"
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert service["ProtectSystem"] == "strict"
    assert service["RestartPreventExitStatus"] == "2 3"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_takes_it(tmp_path):
    copy = tmp_path / "domkl-node@x.service"
    copy.write_text(UNIT.read_text().replace("/opt/domkl/bin/domkl", "/bin/true"))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    assert copy.name not in done.stderr, done.stderr


@pytest.fixture
def metrics(tmp_path):
    """What a node that has learned gives to Prometheus, and one with a certificate."""
    init_mesh(tmp_path / "mesh", mesh_config(["a", "b"], [("a", "b")]))

    async def story():
        node = made(solo_folder(tmp_path))
        await node.start()
        await node.intake.accept(prepared(node, range(5)))
        await until(lambda: node.is_idle)
        node.protocol.measures.gaps.add(0.1)  # as with a neighbor
        node.record()
        text = generate_latest(registry_of(node)).decode()
        await node.close()
        certified = made(tmp_path / "mesh" / "a")  # the other has no certificate
        certified.certificate.look(0.0)
        text += generate_latest(registry_of(certified)).decode()
        await certified.close()
        return text

    return asyncio.run(story())


def rules():
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


EXPRESSIONS = {
    "rules": lambda: [rule["expr"] for rule in rules()],
    "dashboard": lambda: [each["expr"] for panel in panels() for each in panel["targets"]],
}


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_every_metric_and_every_value_is_one_of_a_node(place, metrics):
    text = "\n".join(EXPRESSIONS[place]())
    named = set(re.findall(r"\b(?:domkl|process)_\w+", text))
    assert len(named) > 5
    assert named - set(re.findall(r"^# TYPE (\w+) ", metrics, re.M)) == set()
    for label in re.findall(r'\bof="[^"]+"', text):
        assert re.search(rf"^domkl_squared_error_total{{.*{label}.*}}", metrics, re.M), label


def test_alerts_have_names_of_their_own_and_one_is_for_lost_links():
    assert len({rule["alert"] for rule in rules()}) == len(rules())
    assert "domkl_link_up == 0" in [rule["expr"] for rule in rules()]


@pytest.mark.parametrize("name", ["prometheus.yml", "compose.yml"])
def test_prometheus_reads_the_rules_that_are_there(name):
    config = yaml.safe_load((PROMETHEUS / name).read_text())
    assert config["rule_files"] == ["alerts.yml"]
    assert (PROMETHEUS / "alerts.yml").exists()


def test_the_dashboard_asks_the_source_that_is_provisioned():
    folder = DEPLOY / "grafana/provisioning"
    (source,) = yaml.safe_load((folder / "datasources/prometheus.yml").read_text())["datasources"]
    board = json.loads(DASHBOARD.read_text())
    asked = {each["datasource"]["uid"] for panel in panels() for each in [panel, *panel["targets"]]}
    asked |= {each["datasource"]["uid"] for each in board["templating"]["list"]
              if "datasource" in each}  # fmt: skip
    assert asked == {source["uid"]}
    variables = {each["name"] for each in board["templating"]["list"]}
    assert set(re.findall(r"\$(\w+)", "\n".join(EXPRESSIONS["dashboard"]()))) <= variables
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_panels_do_not_overlap():
    taken = set()
    for at in (panel["gridPos"] for panel in panels()):
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert max(x for x, _ in cells) < 24
        assert not cells & taken
        taken |= cells


@pytest.fixture
def services():
    return yaml.safe_load((DEPLOY / "compose.yml").read_text())["services"]


@pytest.fixture
def mesh(tmp_path):
    """The mesh that the README of deploy/ has one make for compose.yml."""
    text = (DEPLOY / "README.md").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^domkl (mesh init .*) mesh$", text, re.M)
    assert main([*shlex.split(line), str(tmp_path / "mesh")]) == 0
    return tmp_path / "mesh"


def mounts(service):
    return {target: source for source, target, *_ in
            (each.split(":") for each in service.get("volumes", ()))}  # fmt: skip


def nodes_of(services):
    return {name: service for name, service in services.items() if service["image"] == "domkl"}


def test_every_learner_has_a_container_of_its_name_and_at_its_address(services, mesh):
    config, nodes = read_mesh(mesh), nodes_of(services)
    assert list(nodes) == list(config.names)
    assert len(nodes) == 5
    for name, service in nodes.items():
        member = config.member(name)
        assert str(member.address) == f"{name}:21000"
        assert str(member.http) == "0.0.0.0:22000"
        words = shlex.split(service["command"])
        args = parser().parse_args(words)
        assert mounts(service) == {str(args.folder): f"./mesh/{name}"}
        assert args.topic.endswith(f"/{name}")
        assert args.publish.endswith(f"/{name}")
        assert args.mqtt == "mqtt://broker"
    ports = [port for service in services.values() for port in service["ports"]]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports)


def test_all_that_is_mounted_is_there_or_made_by_mesh_init(services, mesh):
    found = {source for service in services.values() for source in mounts(service).values()}
    made_there = {source for source in found if source.startswith("./mesh/")}
    assert {source for source in made_there if not (mesh.parent / source).exists()} == set()
    others = found - made_there - {"./state/prometheus"}  # a command of the README makes it
    assert {source for source in others if not (DEPLOY / source).exists()} == set()


def test_nobody_gets_the_key_of_the_authority(services, mesh):
    for service in services.values():
        for source in mounts(service).values():
            path = (mesh.parent / source).resolve()
            assert not (mesh / "authority/ca.key").is_relative_to(path)


def test_prometheus_asks_every_learner_with_what_is_mounted(services, mesh):
    config = yaml.safe_load((PROMETHEUS / "compose.yml").read_text())
    mounted, asked = mounts(services["prometheus"]), []
    for job in config["scrape_configs"]:
        ((target,),) = [each["targets"] for each in job["static_configs"]]
        name, _, port = target.partition(":")
        asked.append(name)
        assert (job["scheme"], port) == ("https", "22000")
        assert mounted[job["tls_config"]["ca_file"]] == "./mesh/authority/ca.pem"
        assert mounted[job["authorization"]["credentials_file"]] == f"./mesh/{name}/token"
        assert re.match("domkl", job["job_name"])  # as the rules demand
    assert asked == list(read_mesh(mesh).names)


def test_grafana_finds_its_files_where_they_are_mounted(services):
    mounted = mounts(services["grafana"])
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/domkl.yml").read_text())
    (path,) = [each["options"]["path"] for each in provider["providers"]]
    assert mounted[path] == "./grafana/dashboards"
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert home == f"{path}/{DASHBOARD.name}"


STEPS = dockerfile.parse((DEPLOY / "Dockerfile").read_text())
BEGIN = max(k for k, step in enumerate(STEPS) if step.word == "FROM")
IMAGE = STEPS[BEGIN:]


def only(word):
    """The text of the one instruction of the image that has this word."""
    (found,) = [step.text for step in IMAGE if step.word == word]
    return found


def test_an_unknown_instruction_is_an_error():
    with pytest.raises(SystemExit, match="got COPPY"):
        dockerfile.parse("FROM debian:bookworm-slim\nCOPPY a b\n")


def test_continued_lines_and_comments_are_read_as_docker_does():
    text = "# a\nFROM x\nRUN a \\\n    # why\n    && b\nENV C=1\n"
    assert dockerfile.parse(text) == [("FROM", "x"), ("RUN", "a && b"), ("ENV", "C=1")]


def test_the_image_is_in_a_sane_order():
    words = [step.word for step in IMAGE]
    assert STEPS[0].word == "ARG"
    assert only("USER") == "domkl"
    created = next(k for k, step in enumerate(IMAGE) if "useradd" in step.text)
    user, warm = words.index("USER"), max(k for k, word in enumerate(words) if word == "RUN")
    assert created < user < warm, "the cache must be written by the user who reads it"
    assert words.index("ENV") < warm
    assert words.index("VOLUME") > warm, "what is written to a volume later is lost"
    assert "domkl node" in IMAGE[warm].text
    for step in STEPS:
        if "apt-get install" in step.text:
            assert "--no-install-recommends" in step.text
            assert "rm -rf /var/lib/apt/lists/*" in step.text


def test_the_image_starts_a_node_in_its_volume():
    words = json.loads(only("ENTRYPOINT")) + json.loads(only("CMD"))
    assert words[0] == "domkl"
    assert str(parser().parse_args(words[1:]).folder) == only("VOLUME") == healthy.FOLDER
    assert only("EXPOSE").split() == ["21000", "22000"]
    assert ":22000/" in healthy.URL
    copied = {step.text.split()[-1] for step in IMAGE if step.word == "COPY"}
    assert json.loads(only("HEALTHCHECK").partition("CMD ")[2])[1] in copied


def test_the_cache_of_the_image_is_where_numba_looks():
    where = dict(word.split("=", 1) for word in shlex.split(only("ENV")))["NUMBA_CACHE_DIR"]
    assert any(where in step.text and "install -d -o domkl" in step.text for step in IMAGE)


def test_only_what_is_copied_is_sent_to_the_builder():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    assert "*" in lines
    copied = set()
    for step in STEPS:
        if step.word == "COPY" and "--from" not in step.text:
            copied |= set(step.text.split()[:-1])
    assert sent == copied
    assert {name for name in copied if not (ROOT / name).exists()} == set()


class Answer(BaseHTTPRequestHandler):
    code = 200

    def do_GET(self):
        self.send_response(self.code if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *words):
        pass


@pytest.fixture
def answering(tmp_path):
    """A server with a learner's certificate, and the folder of that learner."""
    init_mesh(tmp_path / "mesh", mesh_config(["a", "b"], [("a", "b")]))
    folder = tmp_path / "mesh/a"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "node.pem", folder / "node.key")
    handler = type("Mine", (Answer,), {})
    server = HTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # a client that does not trust it goes away
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}/healthz", folder, handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_container_is_healthy_while_its_node_is(answering):
    url, folder, handler = answering
    assert healthy.is_healthy(url, folder)
    handler.code = 503
    assert not healthy.is_healthy(url, folder)


def test_a_stranger_at_the_port_is_not_healthy(answering, tmp_path):
    url, _, _ = answering
    init_mesh(tmp_path / "other", mesh_config(["a", "b"], [("a", "b")]))
    assert not healthy.is_healthy(url, tmp_path / "other/a")


def test_nobody_at_the_port_is_not_healthy(tmp_path):
    assert not healthy.is_healthy("http://127.0.0.1:1/healthz", tmp_path)


def promtool(*words, cwd=PROMETHEUS):
    command = ["promtool", "check", *words]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here")


@needs_promtool
@pytest.mark.parametrize("words", [["prometheus.yml"], ["--syntax-only", "compose.yml"]])
def test_promtool_takes_configuration_and_rules(words):
    promtool("config", *words)  # the second names tokens, which are not there


@needs_promtool
def test_promtool_takes_the_expressions_of_the_dashboard(tmp_path):
    (tmp_path / "asked.yml").write_text(yaml.safe_dump(as_rules(EXPRESSIONS["dashboard"]())))
    promtool("rules", "asked.yml", cwd=tmp_path)


def as_rules(expressions):
    """Recording rules of these expressions, with a window as Grafana puts it in."""
    asked = [{"record": f"asked:{k}", "expr": each.replace("$window", "1h")}
             for k, each in enumerate(expressions)]  # fmt: skip
    return {"groups": [{"name": "asked", "rules": asked}]}


def test_alerts_reach_the_alertmanager_of_the_compose_file(services):
    asked = yaml.safe_load((PROMETHEUS / "compose.yml").read_text())["alerting"]["alertmanagers"]
    (target,) = asked[0]["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert services[name]["ports"] == [f"127.0.0.1:{port}:{port}"]
    source, place, _ = services[name]["volumes"][0].split(":")
    assert (DEPLOY / source).samefile(PROMETHEUS / "alertmanager.yml")
    assert f"--config.file={place}" in services[name]["command"]


def test_every_severity_and_alert_that_is_routed_is_one_of_the_rules():
    config = yaml.safe_load((PROMETHEUS / "alertmanager.yml").read_text())
    groups = yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    known = {"severity": {rule["labels"]["severity"] for rule in rules},
             "alertname": {rule["alert"] for rule in rules}}  # fmt: skip
    routed = [each["matchers"] for each in config["route"]["routes"]]
    routed += [each["source_matchers"] for each in config["inhibit_rules"]]
    for label, value in re.findall(r'(\w+)="(\w+)"', str(routed)):
        assert value in known[label]
    assert config["route"]["receiver"] in [each["name"] for each in config["receivers"]]


@pytest.mark.skipif(shutil.which("amtool") is None, reason="no amtool here")
def test_amtool_takes_who_is_told_and_routes_by_severity():
    file = PROMETHEUS / "alertmanager.yml"
    for words in (["check-config", str(file)], ["config", "routes", "test", "severity=critical",
                  f"--config.file={file}", "--verify.receivers=operator"]):  # fmt: skip
        done = subprocess.run(["amtool", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
