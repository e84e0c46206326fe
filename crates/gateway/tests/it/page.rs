//! The pages for admins, as a browser uses them.

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_core::evidence::{Index, Summary};
use formwork_core::{History, Leaves, Time, Trust, Warning, WarningKind};
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
    let refused = post(&gate, "/logout", &cookie, OWN, "csrf=other");
    assert!(refused.status == 403 && refused.text().contains("<nav"), "{}", refused.text());
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
    for name in ["person", "user"] {
        std::fs::write(folder.path().join(format!("{name}.json")), schema().to_string()).unwrap();
    }
    let server = Server::start([completion(r#"{"age":34}"#)]).unwrap();
    let ledger = ledger();
    let view = Gate::start(Gateway::builder().with_ledger(ledger.clone()).as_view());
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
        // The body has this text, but not as the name of a format.
        (&[key, ("x-formwork-contract", "user")], &plain, &["x-formwork-contract: user"]),
        // The format of the body has the same name, and both would be an error.
        (&[key], &formatted, &[]),
        (&labels, &plain, &["x-formwork-tags: a, b", "x-formwork-user: maria"]),
    ] {
        let got = gate.post("/v1/chat/completions", headers, body);
        assert_eq!(got.status, 200, "{}", got.text());
        ledger.flush_blocking().unwrap();
        let path = format!("/runs/{}", got.header("x-formwork-run").unwrap());
        // A view has no folder of contracts.
        for page in [get(&gate, &path, &cookie), get(&view, &path, "")].map(|got| got.text()) {
            let command = page.split("curl ").nth(1).unwrap_or_else(|| panic!("{page}"));
            let command = command.split("--data-binary").next().unwrap();
            let given: Vec<_> = command.split("-H &#39;x-formwork-").skip(1).collect();
            assert_eq!(given.len(), expected.len(), "{command}");
            for expected in expected {
                assert!(command.contains(&format!("-H &#39;{expected}&#39;")), "{expected}: {command}");
            }
            assert!(page.contains("x-formwork-budget</code>, are not recorded"), "{page}");
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
        let (name, form) = (wrong.split('=').next().unwrap(), "<form method=\"get\" action=\"/runs\"");
        assert!(got.status == 400 && got.text().contains(name), "{wrong}: {}", got.text());
        assert!(got.text().contains(form) && got.text().contains("<nav"), "{wrong}: {}", got.text());
    }
    for path in ["/runs/run_0000000000000", "/contracts/none"] {
        let got = get(&gate, path, "");
        assert!(
            got.status == 404
                && got.text().contains("<h1>Not Found</h1>\n<p role=\"alert\">there is no such")
        );
        let json = gate
            .send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes());
        assert!(json.status == 404 && json.text().starts_with('{'), "{}", json.text());
    }
}

/// Returns the addresses of the links of a page to lists of runs, with their texts.
fn links(page: &str) -> Vec<(String, String)> {
    let link = |rest: &str| {
        let (address, rest) = rest.split_once("\">")?;
        let text = rest.split('<').next()?.to_owned();
        Some((address.replace("&#38;", "&"), text)).filter(|(address, _)| address.starts_with("/runs?"))
    };
    page.split("href=\"").filter_map(link).collect()
}

#[test]
fn links_lead_to_the_runs_that_a_row_counts_and_to_no_others() {
    let ledger = ledger();
    let digest = || Some("9f86d081884c7d65".to_owned());
    for (contract, digest) in
        [(Some("a"), digest()), (Some("b"), digest()), (Some("b"), digest()), (None, None)]
    {
        let mut run = RunRecord::new("extract", now()).with_contract(contract.map(str::to_owned), digest);
        if contract.is_some() {
            run.model = "m-1".to_owned();
        }
        let mut call = StoredCall::new("primary", "m-1", run.started, run.started);
        call.class = "timeout".into();
        run.calls.push(call);
        ledger.record(run);
    }
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let count = |path: &str| get(&gate, path, "").text().matches("href=\"/runs/run_").count();
    let overview = links(&get(&gate, "/", "").text());
    for (part, text, expected) in [
        ("contract=%28none%29&since", "none", 1),
        ("/runs?model=%28none%29", "none", 1),
        ("/runs?key=%28none%29", "none", 4),
        ("called=m-1&contract=%28none%29", "1", 1),
        ("called=m-1&contract=b", "2", 2),
    ] {
        let link = overview.iter().find(|(address, own)| address.contains(part) && own == text);
        let (address, _) = link.unwrap_or_else(|| panic!("{part}: {overview:?}"));
        assert_eq!(count(address), expected, "{address}");
    }
    for (name, expected) in [("a", 1), ("b", 2)] {
        let page = get(&gate, &format!("/contracts/{name}"), "").text();
        let versions = links(&page).into_iter().find(|(address, _)| address.contains("digest=")).unwrap();
        assert_eq!(count(&versions.0), expected, "{versions:?}");
    }
}

#[test]
fn the_filter_of_unsure_runs_lists_those_with_a_mark_and_no_others() {
    type Set = fn(&mut RunRecord);
    let value = json!({"age": 4});
    let trust = |history| Trust {
        other: [(history, Leaves { count: 1, paths: Vec::new() })].into(),
        ..Trust::default()
    };
    let (coerced, patched) = (trust(History::Coerced), trust(History::Patched));
    let sets: [(&str, Set); 4] = [
        ("1 warnings", |run| run.warnings.push(Warning::new(WarningKind::Check, "look"))),
        ("1 not stated", |run| run.not_stated.push("$.a".parse().unwrap())),
        ("", |_| ()),
        ("", |run| run.cached = true),
    ];
    let ledger = ledger();
    let record = |set: &dyn Fn(&mut RunRecord)| {
        let mut run = RunRecord::new("extract", now());
        set(&mut run);
        let id = run.id.to_string();
        ledger.record(run);
        id
    };
    let mut expected: Vec<_> = sets.iter().map(|(mark, set)| (*mark, record(set))).collect();
    expected.push(("1 converted", record(&|run| run.trust = Some(coerced.clone()))));
    expected.push(("", record(&|run| run.trust = Some(patched.clone()))));
    let found = Summary::of(&Index::new("aged 3").evidence(&value, None), &value);
    expected.push(("1 not found", record(&|run| run.evidence = Some(found))));
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let (all, unsure) = (get(&gate, "/runs", "").text(), get(&gate, "/runs?unsure=yes", "").text());
    let exported = get(&gate, "/runs.jsonl?unsure=yes", "").text();
    for (mark, id) in expected {
        let row = all.split("<tr>").find(|row| row.contains(&id)).unwrap();
        assert!(row.contains(&format!("<td>{mark}</td>")), "{mark}: {row}");
        assert_eq!(unsure.contains(&id), !mark.is_empty(), "{mark}");
        assert_eq!(exported.contains(&id), !mark.is_empty(), "{mark}");
    }
}

/// A page examines 50,000 runs, and an export has 1,000.
#[test]
fn lists_and_exports_say_that_there_are_more_runs() {
    let ledger = Ledger::in_memory(Settings { max_queued: 60_000, ..Settings::default() }).unwrap();
    let old = RunRecord::new("extract", now()).with_labels(Some("maria".to_owned()), Vec::new());
    ledger.record(old);
    (0..50_000).for_each(|_| ledger.record(RunRecord::new("batch", now())));
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let page = get(&gate, "/runs?user=maria", "").text();
    assert!(page.contains("This page examined 50000 runs. Older runs may match."), "{page}");
    let next = page.split("rel=\"next\" href=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let older = get(&gate, &next.replace("&#38;", "&"), "").text();
    assert!(older.contains("href=\"/runs/run_") && !older.contains("may match"), "{older}");
    // The link of a later page exports the whole filter.
    assert!(older.contains("href=\"/runs.jsonl?user=maria\""), "{older}");
    for (query, more) in [("", Some("true")), ("?user=maria", None)] {
        assert_eq!(get(&gate, &format!("/runs.jsonl{query}"), "").header("x-formwork-more"), more);
    }
}

#[test]
fn evidence_is_that_of_the_text_which_the_run_had_and_not_of_its_json() {
    let ledger = ledger();
    let request = r#"{"model": "m", "messages": [{"role": "user", "content": "Zo\u00eb has no colour"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object",
        "properties": {"color": {"enum": ["red", "blue"]}, "name": {"type": "string"}}}}}}"#;
    let input = r#"{"input": "Zo\u00eb has no colour", "schema": {"enum": ["red"]}}"#;
    let messages = r#"[{"role": "system", "parts": [{"type": "text", "text": "red"}]}, {"role": "user", "parts": [{"type": "text", "text": "Zo\u00eb has no colour"}]}]"#;
    let gate = gate(&ledger);
    for (source, request) in
        [("/v1/chat/completions", request), ("/v1/extract", input), ("extract", messages)]
    {
        let mut run = RunRecord::new(source, now()).with_request(Some(request.to_owned()));
        let mut call = StoredCall::new("primary", "m-1", run.started, run.started);
        call.answer = Some(r#"{"color": "red", "name": "Zoë"}"#.to_owned());
        run.calls.push(call);
        let id = run.id;
        ledger.record(run);
        ledger.flush_blocking().unwrap();
        let page = get(&gate, &format!("/runs/{id}"), "").text();
        assert!(page.contains("title=\"$.name: exact\">Zoë</mark> has no colour"), "{source}: {page}");
        assert!(page.contains("<td>&#34;red&#34;</td><td>not found</td>"), "{source}: {page}");
    }
}

#[test]
fn characters_that_nobody_sees_are_escapes_and_a_cached_run_says_so() {
    let ledger = ledger();
    let mut run = RunRecord::new("extract", now())
        .with_labels(Some("a\u{202e}b\u{2066}c\u{200f}\u{e0041}👩\u{200d}🔬".into()), vec![]);
    run.cached = true;
    let id = run.id;
    ledger.record(run);
    ledger.flush_blocking().unwrap();
    let gate = gate(&ledger);
    let page = get(&gate, &format!("/runs/{id}"), "").text();
    assert!(page.contains("a\\u202eb\\u2066c\\u200f\\udb40\\udc41👩\u{200d}🔬"), "{page}");
    assert!(page.contains("<td>answer</td><td>from the cache: no model was called</td>"), "{page}");
    let (overview, keys) = (get(&gate, "/?days=7", "").text(), get(&gate, "/keys", "").text());
    let day = overview.split("Since ").nth(1).and_then(|rest| rest.split(':').next());
    assert!(day.is_some_and(|day| day.ends_with("T00")), "{overview}");
    assert!(keys.contains("adds and revokes keys") && !keys.contains("Log in"), "{keys}");
}

#[test]
fn a_contract_whose_file_became_unusable_is_shown_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("person.json");
    std::fs::write(&file, schema().to_string()).unwrap();
    let builder = targets(&openai("http://127.0.0.1:9")).with_limits(limits()).with_contracts(folder.path());
    let gate = Gate::start(builder.with_ledger(ledger()));
    let pages = || ["/contracts", "/contracts/person"].map(|path| get(&gate, path, "").text());
    assert!(pages().iter().all(|page| !page.contains("cannot be used")));
    std::fs::write(&file, "{\"type\": ").unwrap();
    let [list, one] = pages();
    assert!(list.contains("<td>cannot be used: the last version is in use</td>"), "{list}");
    assert!(
        one.contains("The file cannot be used: its last version is in use") && one.contains("person.json"),
        "{one}"
    );
    assert!(one.contains("<h2>Schema</h2>"), "{one}");
}
