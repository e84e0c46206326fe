//! The pages for admins, as a browser uses them.

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_core::Time;
use formwork_core::evidence::{Index, Summary};
use formwork_extract::ObservationStore;
use formwork_gateway::{Gateway, Target};
use formwork_ledger::{KeyRole, Ledger, NewKey, Period, RunRecord, Settings, StoredCall, ViolationRecord};

use formwork_testkit::server::{Reply, Server};
use serde_json::json;

use super::support::{Gate, Received, completion, limits, now, openai, schema, section, targets};

/// A service with a ledger; no page calls its target.
fn gate(ledger: &Ledger) -> Gate {
    Gate::start(targets(&openai("http://127.0.0.1:9")).with_limits(limits()).with_ledger(ledger.clone()))
}

fn ledger() -> Ledger {
    Ledger::in_memory(Settings { bodies: true, ..Settings::default() }).unwrap()
}

fn add(ledger: &Ledger, name: &str, role: KeyRole) -> String {
    let (_, secret) = ledger.add_key(NewKey { role, ..NewKey::new(name) }, now()).unwrap();
    secret.reveal().to_owned()
}

fn get(gate: &Gate, path: &str, cookie: &str) -> Received {
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
    );
    gate.send(head.as_bytes())
}

fn post(gate: &Gate, path: &str, cookie: &str, origin: &str, form: &str) -> Received {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\naccept: text/html\r\ncookie: {cookie}\r\nconnection: close\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    );
    gate.send(head.as_bytes())
}

const OWN: &str = "http://localhost";

/// Logs in; returns the cookie and the token of the forms.
fn session(gate: &Gate, secret: &str) -> (String, String) {
    let got = post(gate, "/login", "", OWN, &format!("key={secret}"));
    assert_eq!((got.status, got.header("location")), (303, Some("/")), "{}", got.text());
    let cookie = got.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age=43200"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(secret));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let page = get(gate, "/keys", &cookie).text();
    let token = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    (cookie, token.to_owned())
}

#[test]
fn a_browser_logs_in_with_an_admins_key_and_its_session_ends_with_the_logout_and_the_key() {
    let ledger = ledger();
    let (root, alice) = (add(&ledger, "root", KeyRole::Admin), add(&ledger, "alice", KeyRole::Client));
    let gate = gate(&ledger);
    for path in ["/", "/runs", "/keys", "/runs/run_0000000000000"] {
        let got = get(&gate, path, "formwork-session=0");
        assert_eq!((got.status, got.header("location")), (303, Some("/login")), "{path}");
    }
    assert_eq!(get(&gate, "/login", "").status, 200);
    for (key, status) in [("", 401), ("fw_wrong", 401), (alice.as_str(), 403)] {
        let got = post(&gate, "/login", "", OWN, &format!("key={key}"));
        assert_eq!((got.status, got.header("set-cookie")), (status, None));
    }
    let (cookie, token) = session(&gate, &root);
    for path in ["/", "/?days=30", "/runs", "/keys", "/runs.jsonl"] {
        assert_eq!(get(&gate, path, &cookie).status, 200, "{path}");
    }
    assert_eq!(post(&gate, "/logout", &cookie, OWN, "csrf=other").status, 403);
    assert_eq!(post(&gate, "/logout", &cookie, OWN, &format!("csrf={token}")).status, 303);
    assert_eq!(get(&gate, "/", &cookie).status, 303);
    let (cookie, _) = session(&gate, &root);
    ledger.rotate_key("root").unwrap();
    assert_eq!(get(&gate, "/", &cookie).status, 303, "a rotated key");
}

#[test]
fn forms_need_the_token_of_their_session_and_the_origin_of_the_service() {
    let ledger = ledger();
    let root = add(&ledger, "root", KeyRole::Admin);
    let run = RunRecord::new("extract", now());
    let id = run.id;
    ledger.record(run);
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let (cookie, token) = session(&gate, &root);
    let feedback = format!("/runs/{id}/feedback");
    let forms = [
        ("/keys", "name=bob&budget=2.50&rpm=7&models=a,+b", 200),
        ("/keys/revoke", "name=bob", 200),
        (feedback.as_str(), "feedback=good", 303),
    ];
    for (path, form, status) in forms {
        let whole = format!("{form}&csrf={token}");
        assert_eq!(post(&gate, path, &cookie, OWN, form).status, 403, "{path} without a token");
        assert_eq!(post(&gate, path, &cookie, "http://evil.example", &whole).status, 403, "{path}");
        assert_eq!(post(&gate, path, &cookie, "null", &whole).status, 403, "{path}");
        let without = post(&gate, path, "", OWN, &whole);
        assert_eq!(without.header("location"), Some("/login"), "{path} without a session");
        let got = post(&gate, path, &cookie, OWN, &whole);
        assert_eq!(got.status, status, "{path}: {}", got.text());
    }
    let bob = ledger.key("bob").unwrap();
    assert_eq!((bob.budget, bob.rpm, bob.models.len()), (Some(2_500_000), Some(7), 2));
    assert!(bob.revoked.is_some() && bob.role == KeyRole::Client);
    assert_eq!(ledger.run(id).unwrap().unwrap().run.feedback.as_deref(), Some("good"));
    let page = post(&gate, "/keys", &cookie, OWN, &format!("name=%3Cb%3E&csrf={token}")).text();
    assert!(page.contains("&#60;b&#62;") && !page.contains("<b>"), "{page}");
    for (form, flaw) in [("name=", "1 to 64"), ("name=x&budget=much", "budget"), ("name=x&rpm=-1", "number")]
    {
        let got = post(&gate, "/keys", &cookie, OWN, &format!("{form}&csrf={token}")).text();
        assert!(got.contains(flaw) && ledger.key("x").is_err(), "{form}: {got}");
    }
}

#[test]
fn the_command_that_repeats_a_request_has_its_named_contract_and_its_labels() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("person.json"), schema().to_string()).unwrap();
    let server = Server::start([completion(r#"{"age":34}"#)]).unwrap();
    let ledger = ledger();
    let root = add(&ledger, "root", KeyRole::Admin);
    let builder = targets(&openai(&server.url())).with_limits(limits()).with_contracts(folder.path());
    let gate = Gate::start(builder.with_bodies().with_ledger(ledger.clone()));
    let (cookie, _) = session(&gate, &root);
    let key = ("x-api-key", root.as_str());
    let plain = json!({"model": "primary", "messages": [{"role": "user", "content": "Maria, 34"}]});
    let mut formatted = plain.clone();
    formatted["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema()}});
    let labels = [key, ("x-formwork-tags", "a,b"), ("x-formwork-user", "maria")];
    for (headers, body, expected) in [
        (&[key, ("x-formwork-contract", "person")][..], &plain, &["x-formwork-contract: person"][..]),
        // The format of the body has the same name, and both would be an error.
        (&[key], &formatted, &[]),
        (&labels, &plain, &["x-formwork-tags: a, b", "x-formwork-user: maria"]),
    ] {
        let got = gate.post("/v1/chat/completions", headers, body);
        assert_eq!(got.status, 200, "{}", got.text());
        ledger.flush_blocking().unwrap();
        let page = get(&gate, &format!("/runs/{}", got.header("x-formwork-run").unwrap()), &cookie).text();
        let command = page.split("curl ").nth(1).unwrap_or_else(|| panic!("{page}"));
        let command = command.split("--data-binary").next().unwrap();
        let given: Vec<_> = command.split("-H &#39;x-formwork-").skip(1).collect();
        assert_eq!(given.len(), expected.len(), "{command}");
        for expected in expected {
            assert!(command.contains(&format!("-H &#39;{expected}&#39;")), "{expected}: {command}");
        }
    }
}

#[test]
fn keys_with_a_budget_of_a_period_show_what_was_spent_of_it() {
    let ledger = ledger();
    let root = add(&ledger, "root", KeyRole::Admin);
    for (name, amounts) in [("idle", &[(40, 3_000_000)][..]), ("busy", &[(40, 3_000_000), (0, 250_000)])] {
        let new = NewKey { budget: Some(5_000_000), period: Some(Period::Day), ..NewKey::new(name) };
        let (key, _) = ledger.add_key(new, now()).unwrap();
        for (days, amount) in amounts {
            let at = Time(now().0 - days * 86_400_000);
            ledger.reserve_blocking(key.id, *amount, None, at).unwrap().settle_blocking(*amount).unwrap();
        }
    }
    let gate = gate(&ledger);
    let (cookie, _) = session(&gate, &root);
    let cells = |page: &str, name: &str| -> Vec<String> {
        let row = page.split("<tr").find(|row| row.contains(&format!(">{name}<"))).unwrap_or_default();
        let cell = |cell: &str| {
            cell.split('>').find_map(|part| {
                part.split('<').next().filter(|text| !text.trim().is_empty()).map(str::to_owned)
            })
        };
        row.split("<td").skip(1).filter_map(cell).collect()
    };
    for (path, name, expected) in [
        ("/keys", "idle", ["0.00", "5.00 a day"]),
        ("/keys", "busy", ["0.25", "5.00 a day"]),
        // The overview has the spending since the key was added, and what is left now.
        ("/", "idle", ["3.00", "5.00"]),
        ("/", "busy", ["3.25", "4.75"]),
    ] {
        let page = get(&gate, path, &cookie).text();
        let cells = cells(&page, name);
        for expected in expected {
            assert!(cells.iter().any(|cell| cell == expected), "{path}, {name}: {expected}: {cells:?}");
        }
    }
}

#[test]
fn no_text_of_a_model_or_a_client_is_markup_on_any_page() {
    const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;</pre>";
    type Set = fn(&mut RunRecord, String);
    let text = || HOSTILE.to_owned();
    let fields: [(&str, Set); 13] = [
        ("message", |run, text| run.message = Some(text)),
        ("source", |run, text| run.source = text.into()),
        ("user", |run, text| run.user = Some(text)),
        ("contract", |run, text| run.contract = Some(text)),
        ("digest", |run, text| run.digest = Some(text)),
        ("target", |run, text| run.target = text),
        ("model", |run, text| run.model = text),
        ("tags", |run, text| run.tags = vec![text]),
        ("request", |run, text| run.request = Some(text)),
        ("answer", |run, text| run.calls[0].answer = Some(text)),
        ("class", |run, text| run.calls[0].class = text.into()),
        ("patched", |run, text| run.calls[0].patched = vec![text]),
        ("violation", |run, text| {
            let [class, path, message] = [text.clone(), text.clone(), text];
            run.calls[0].violations.push(ViolationRecord { class, path, message });
        }),
    ];
    let ledger = ledger();
    let gate = gate(&ledger);
    for (name, set) in fields {
        let mut run = RunRecord::new("extract", now());
        run.calls.push(StoredCall::new("primary", "m-1", run.started, run.started));
        set(&mut run, text());
        let id = run.id;
        ledger.record(run);
        ledger.flush_blocking().unwrap();
        let one = get(&gate, &format!("/runs/{id}"), "").text();
        assert!(one.contains("alert(1)"), "{name} is not on the page");
        let query = "/runs?text=%3Cscript%3E%22%27%3E&tag=%3Cimg+src%3Dx%3E";
        for page in [
            one,
            get(&gate, "/", "").text(),
            get(&gate, "/runs", "").text(),
            get(&gate, query, "").text(),
            get(&gate, "/contracts", "").text(),
        ] {
            assert!(
                !page.contains("<script>") && !page.contains("<img") && !page.contains("\"'>"),
                "{name}: {page}"
            );
        }
    }
    let page = get(&gate, "/", "");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
}

/// The overview says what is in force about targets, on which evidence, since when and until when; once for a store that two share.
#[test]
fn the_overview_lists_what_is_in_force_with_its_evidence_and_times() {
    let server = Server::start([Reply::json("{}").with_status(503)]).unwrap();
    let (store, providers) = (ObservationStore::new(), Providers::builtin());
    let config = [section("one", "openai", &server.url()), section("two", "openai", &server.url())].concat();
    let config = Config::from_toml(&config).unwrap();
    let builder = config.sections().iter().fold(Gateway::builder(), |builder, section| {
        let made = providers.make(section).unwrap();
        let model = made.model.clone();
        let backend = providers.backend_of(made, section).unwrap().with_observation_store(store.clone());
        builder.with_target(Target::new(backend, None, model))
    });
    let gate = Gate::start(builder.with_limits(limits()).with_ledger(ledger()));
    let effect = "it is skipped if there is another target, because of ";
    assert!(!get(&gate, "/", "").text().contains(effect));
    let body = json!({"schema": schema(), "input": "Maria, 34", "targets": ["one"]});
    // Three of the last ten calls.
    for _ in 0..3 {
        assert_eq!(gate.post("/v1/extract", &[], &body).status, 503);
    }
    let page = get(&gate, "/", "").text();
    assert_eq!(page.matches(effect).count(), 1, "{page}");
    let row = page.split(effect).nth(1).unwrap().split("</tr>").next().unwrap();
    let in_force = store.in_force();
    let [one] = &in_force[..] else { panic!("{in_force:?}") };
    assert!(row.contains("503 Service Unavailable") && one.count == 3, "{row} {one:?}");
    let times: Vec<&str> = row.match_indices("20").filter_map(|(at, _)| row.get(at..at + 20)).collect();
    let times: Vec<&str> =
        times.into_iter().filter(|time| time.ends_with('Z') && time.contains('T')).collect();
    let [since, last, until] = times[..] else { panic!("{row}") };
    assert!(since <= last && last < until, "{row}");
    store.forget(None);
    assert!(!get(&gate, "/", "").text().contains(effect));
}

#[test]
fn lists_filter_page_and_export_the_runs_that_the_ledger_finds() {
    let ledger = ledger();
    let start = now();
    for nth in 0..60 {
        let mut run = RunRecord::new("extract", start).with_contract(Some(format!("c-{}", nth % 2)), None);
        let mut call = StoredCall::new("primary", "m-1", start, start);
        if nth == 9 {
            let value = json!({"age": 4});
            run.evidence = Some(Summary::of(&Index::new("aged 3").evidence(&value, None), &value));
        }
        if nth == 7 {
            call.class = "invalid".into();
            let [class, path, message] = ["type", "$.items[3].price", "is no number"].map(str::to_owned);
            call.violations.push(ViolationRecord { class, path, message });
        }
        run.calls.push(call);
        ledger.record(run);
    }
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let count = |page: &str| page.matches("href=\"/runs/run_").count();
    for (query, expected) in [
        ("", 50),
        ("?contract=c-1", 30),
        ("?contract=c-2", 0),
        ("?class=type", 1),
        ("?class=type&path=%24.items%5B*%5D.price", 1),
        ("?retried=yes", 0),
        ("?unsure=yes", 1),
        ("?until=1", 0),
    ] {
        let page = get(&gate, &format!("/runs{query}"), "").text();
        assert_eq!(count(&page), expected, "{query}");
    }
    let first = get(&gate, "/runs", "").text();
    let next = first.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    assert_eq!(count(&get(&gate, next, "").text()), 10);
    let lines = get(&gate, "/runs.jsonl?contract=c-1", "").text();
    assert_eq!(lines.lines().filter(|line| line.starts_with('{')).count(), 30);
    // The reason of the overview leads to its runs.
    let overview = get(&gate, "/", "").text();
    let link = overview.split("href=\"").find(|rest| rest.starts_with("/runs?class=type")).unwrap();
    let link = link.split('"').next().unwrap().replace("&#38;", "&").replace("&amp;", "&");
    assert_eq!(count(&get(&gate, &link, "").text()), 1, "{link}");
    for wrong in ["outcome=x", "before=x", "since=x", "feedback=x", "key=x"] {
        let got = get(&gate, &format!("/runs?{wrong}"), "");
        let name = wrong.split('=').next().unwrap();
        assert!(got.status == 400 && got.text().contains(name), "{wrong}: {}", got.text());
    }
}
