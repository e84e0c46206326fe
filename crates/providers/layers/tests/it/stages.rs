use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use formwork_core::keywords::target;
use formwork_core::{
    Answer, Call, Capabilities, Completion, Context, Delta, Enforcement, Fault, FaultKind, Finish, JsonPath,
    Layer, Lift, LiftOp, Lowered, Message, Provider, Report, Rule, Term, Usage,
};
use formwork_layers::Stages;
use formwork_testkit::{Reply, Scripted};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A server that answers with the lowest or the highest values that a schema allows.
#[derive(Debug)]
struct Extreme {
    capabilities: Capabilities,
    is_high: bool,
    asked: Mutex<Vec<Value>>,
}

impl Extreme {
    fn new(is_high: bool) -> Self {
        let (capabilities, asked) = (Capabilities::new(Enforcement::Schema), Mutex::default());
        Self { capabilities, is_high, asked }
    }

    fn value(&self, root: &Value, schema: &Value) -> Value {
        let schema = target(root, schema).unwrap_or(schema);
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(values) = schema["enum"].as_array() {
            return if self.is_high { values.last() } else { values.first() }.cloned().unwrap();
        }
        match schema["type"].as_str().unwrap() {
            "object" => {
                let members = schema["properties"].as_object().unwrap();
                members
                    .iter()
                    .map(|(name, part)| (name.clone(), self.value(root, part)))
                    .collect::<Map<_, _>>()
                    .into()
            }
            "array" => vec![self.value(root, &schema["items"]); 3].into(),
            "string" => "x".into(),
            _ => schema[if self.is_high { "maximum" } else { "minimum" }].clone(),
        }
    }
}

#[async_trait]
impl Provider for Extreme {
    fn name(&self) -> &str {
        "extreme"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        let schema = call.schema().unwrap();
        self.asked.lock().unwrap().push(schema.clone());
        let text = self.value(schema, schema).to_string();
        Ok(Completion::new(text).with_usage(Usage::new(100, 10)).into())
    }
}

fn call(schema: Value, rules: &[Rule]) -> Call {
    let lowered = Lowered::new(Enforcement::Schema, schema).with_dialect("llama-cpp");
    let mut call = Call::new([Message::user("x")], lowered);
    call.rules = rules.to_vec();
    call
}

fn path(path: &str) -> JsonPath {
    path.parse().unwrap()
}

fn sum(target: &str, terms: &[&str], tolerance: f64) -> Rule {
    let terms = terms.iter().map(|term| Term { path: term.parse().unwrap(), weight: 1.0 }).collect();
    Rule::WeightedSum { target: target.parse().unwrap(), terms, tolerance }
}

fn object(members: &Value) -> Value {
    let names: Vec<&String> = members.as_object().unwrap().keys().collect();
    json!({"type": "object", "properties": members, "required": names, "additionalProperties": false})
}

fn number(least: i64, most: i64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

/// Asks both extremes, and returns the numbers of calls and the documents.
async fn asked(schema: &Value, rules: &[Rule]) -> Vec<(usize, Value)> {
    let mut asked = Vec::new();
    for is_high in [false, true] {
        let server = Arc::new(Extreme::new(is_high));
        let staged = Stages.wrap(Arc::<Extreme>::clone(&server));
        let completion = staged.call(&call(schema.clone(), rules)).await.unwrap().collect().await.unwrap();
        let calls = server.asked.lock().unwrap().len();
        let before = completion.probe.map(|usage| usage.output_tokens);
        assert_eq!(before.unwrap_or_default() as usize, 10 * (calls - 1), "each stage is paid for");
        assert_eq!(completion.usage, Usage::new(100, 10));
        asked.push((calls, serde_json::from_str(&completion.text).unwrap()));
    }
    asked
}

#[tokio::test]
async fn the_server_keeps_the_rules() {
    let net_and_tax = json!({"net": number(0, 500), "tax": number(0, 90), "total": number(0, 9_000)});
    let items = json!({"type": "array", "items": object(&json!({"amount": number(3, 7)}))});
    let table = [
        ("a sum", object(&net_and_tax), vec![sum("$.total", &["$.net", "$.tax"], 2.0)], 2),
        (
            "in an object, after other members",
            object(
                &json!({"id": {"type": "string"}, "invoice": object(&net_and_tax), "note": {"type": "string"}}),
            ),
            vec![sum("$.invoice.total", &["$.invoice.net", "$.invoice.tax"], 0.0)],
            2,
        ),
        (
            "over a list",
            object(&json!({"items": items, "total": number(0, 9_000)})),
            vec![sum("$.total", &["$.items[*].amount"], 0.0)],
            2,
        ),
        (
            "one target after another",
            object(&json!({"net": number(3, 500), "gross": number(0, 900), "paid": number(0, 900)})),
            vec![
                Rule::AtMost { target: "$.paid".parse().unwrap(), limit: "$.gross".parse().unwrap() },
                sum("$.gross", &["$.net"], 1.0),
            ],
            3,
        ),
        (
            "two targets of the same values",
            object(&json!({"net": number(3, 500), "gross": number(0, 900), "paid": number(0, 900)})),
            vec![sum("$.paid", &["$.net"], 0.0), sum("$.gross", &["$.net"], 1.0)],
            2,
        ),
        (
            "a definition",
            json!({
                "type": "object",
                "properties": {"parts": {"$ref": "#/$defs/parts"}, "total": {"$ref": "#/$defs/n"}},
                "required": ["parts", "total"],
                "$defs": {"n": number(0, 9_000), "parts": object(&json!({"a": number(1, 5), "b": number(2, 6)}))},
            }),
            vec![sum("$.total", &["$.parts.a", "$.parts.b"], 0.0)],
            2,
        ),
        (
            "the values after their target",
            object(&json!({"total": number(0, 9_000), "net": number(5, 500)})),
            vec![sum("$.total", &["$.net"], 2.0)],
            1,
        ),
        (
            "a number that is no integer",
            object(&json!({"net": number(5, 500), "total": {"type": "number", "minimum": 0, "maximum": 9}})),
            vec![sum("$.total", &["$.net"], 0.0)],
            1,
        ),
        (
            "in a circle",
            object(&json!({"tax": number(0, 9), "net": number(10, 50), "total": number(0, 90)})),
            vec![
                Rule::AtMost { target: "$.net".parse().unwrap(), limit: "$.tax".parse().unwrap() },
                sum("$.total", &["$.net", "$.tax"], 0.0),
                Rule::AtMost { target: "$.tax".parse().unwrap(), limit: "$.total".parse().unwrap() },
            ],
            3,
        ),
        ("no rule", object(&net_and_tax), vec![], 1),
        (
            "no value in the range",
            object(&json!({"net": number(50, 50), "total": number(0, 9)})),
            vec![sum("$.total", &["$.net"], 2.0)],
            2,
        ),
    ];
    for (name, schema, rules, calls) in table {
        for (made, document) in asked(&schema, &rules).await {
            assert_eq!(made, calls, "{name}");
            let mut report = Report::default();
            for rule in &rules {
                rule.validate(&document, &Context::EMPTY, &mut report);
            }
            let can_be_kept = ![
                "no value in the range",
                "the values after their target",
                "a number that is no integer",
                "in a circle",
            ]
            .contains(&name);
            assert_eq!(report.is_empty(), can_be_kept, "{name}: {document}");
        }
    }
}

#[tokio::test]
async fn what_is_known_stays_and_what_is_absent_stays_absent() {
    let schema = json!({
        "type": "object",
        "properties": {"note": {"type": "string"}, "net": number(0, 50), "tip": number(0, 5), "total": number(0, 90)},
        "required": ["net", "total"],
        "additionalProperties": false,
    });
    let server = Scripted::new([
        Reply::completion(Completion::new(r#"{"net": 20, "tip": 3}"#)),
        Reply::completion(Completion::new(r#"{"net": 20, "tip": 3, "total": 23}"#)),
    ]);
    let server = Arc::new(server.with_capabilities(Capabilities::new(Enforcement::Schema)));
    let staged = Stages.wrap(Arc::<Scripted>::clone(&server));
    let rule = sum("$.total", &["$.net", "$.tip"], 0.0);
    staged.call(&call(schema, &[rule])).await.unwrap().collect().await.unwrap();
    let asked: Vec<Value> = server.calls().iter().map(|call| call.schema().unwrap().clone()).collect();
    assert_eq!(
        asked[0],
        json!({
            "type": "object",
            "properties": {"note": {"type": "string"}, "net": number(0, 50), "tip": number(0, 5)},
            "required": ["net"],
            "additionalProperties": false,
        })
    );
    assert_eq!(
        asked[1],
        json!({
            "type": "object",
            "properties": {"net": {"const": 20}, "tip": {"const": 3}, "total": number(23, 23)},
            "required": ["net", "total", "tip"],
            "additionalProperties": false,
        })
    );
}

#[tokio::test]
async fn members_may_have_other_names_in_the_answer() {
    let renamed = |at: &str, names: &[(&str, &str)]| {
        let names = names.iter().map(|(sent, original)| ((*sent).to_owned(), (*original).to_owned()));
        LiftOp { at: at.to_owned(), lift: Lift::Rename(names.collect()) }
    };
    let parts = object(&json!({"a_b": number(3, 40), "b_a": number(1, 30)}));
    let schema = json!({
        "type": "object",
        "properties": {"a_parts": {"$ref": "#/$defs/parts"}, "b_0/1": number(0, 900)},
        "required": ["a_parts", "b_0/1"],
        "$defs": {"parts": parts},
    });
    let rules = [sum("$.parts.a", &["$.parts.b"], 5.0), sum("$['0/1']", &["$.parts.a", "$.parts.b"], 0.0)];
    let mut call = call(schema, &rules);
    let lifts = vec![
        renamed("", &[("a_parts", "parts"), ("b_0/1", "0/1")]),
        renamed("/$defs/parts", &[("a_b", "b"), ("b_a", "a")]),
    ];
    call.lowered = Arc::new((*call.lowered).clone().with_lift(lifts));
    for (is_high, total) in [(false, 3 + 1), (true, 40 + 30)] {
        let server = Stages.wrap(Arc::new(Extreme::new(is_high)));
        let text = server.call(&call).await.unwrap().collect().await.unwrap().text;
        let (document, problems) = formwork_core::lift(serde_json::from_str(&text).unwrap(), &call.lowered);
        assert_eq!((&document["0/1"], problems), (&json!(total), vec![]), "{document}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_document_ends_the_call_and_a_fault_loses_no_tokens() {
    let schema = object(&json!({"net": number(0, 500), "total": number(0, 900)}));
    let rules = [sum("$.total", &["$.net"], 0.0)];
    let ask = async |replies: Vec<Reply>| {
        let server = Scripted::new(replies).with_capabilities(Capabilities::new(Enforcement::Schema));
        let answer = Stages.wrap(Arc::new(server)).call(&call(schema.clone(), &rules)).await?;
        let mut completion = Completion::new("");
        let mut answer = answer;
        let fault = loop {
            match futures_util::StreamExt::next(&mut answer).await {
                Some(Ok(delta)) if completion.push(delta.clone()) => break None,
                Some(Ok(_)) => {}
                Some(Err(fault)) => break Some(fault.kind),
                None => panic!("no end"),
            }
        };
        Ok::<_, Fault>((completion, fault))
    };
    let fault = || Fault::new(FaultKind::Overloaded, "full");
    let net = || {
        let mut net = Completion::new(r#"{"net": 5}"#).with_usage(Usage::new(7, 3));
        // The first call of a server has its probe.
        net.push(Delta::Probe { usage: Usage::new(20, 1) });
        net
    };

    let (completion, _) = ask(vec![Reply::truncated(r#"{"net": 5"#)]).await.unwrap();
    assert_eq!((completion.text.as_str(), completion.finish), (r#"{"net": 5"#, Finish::Length));
    let (completion, _) = ask(vec![Reply::refusal("I do not add.")]).await.unwrap();
    assert_eq!((completion.finish, completion.probe), (Finish::Refused, None));
    assert_eq!(ask(vec![Reply::fault(fault())]).await.unwrap_err().kind, FaultKind::Overloaded);
    let (completion, kind) = ask(vec![Reply::completion(net()), Reply::fault(fault())]).await.unwrap();
    assert_eq!((kind, completion.probe), (Some(FaultKind::Overloaded), Some(Box::new(Usage::new(27, 4)))));
}

#[tokio::test]
async fn an_optional_object_stays_optional() {
    let invoice = object(&json!({"net": number(0, 50), "total": number(0, 90)}));
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "invoice": invoice},
        "required": ["name"],
        "additionalProperties": false,
    });
    let server = Scripted::new([r#"{"name": "Maria"}"#, r#"{"name": "Maria"}"#]);
    let server = Arc::new(server.with_capabilities(Capabilities::new(Enforcement::Schema)));
    let staged = Stages.wrap(Arc::<Scripted>::clone(&server));
    let rule = sum("$.invoice.total", &["$.invoice.net"], 0.0);
    staged.call(&call(schema, &[rule])).await.unwrap().collect().await.unwrap();
    let asked: Vec<Value> =
        server.calls().iter().map(|call| call.schema().unwrap()["required"].clone()).collect();
    assert_eq!(asked, [json!(["name"]), json!(["name"])]);
}

#[tokio::test]
async fn a_document_is_requested_at_once_where_a_stage_is_refused_or_not_kept() {
    let schema = object(&json!({"part": object(&json!({"net": number(0, 500)})), "total": number(0, 900)}));
    let rules = [sum("$.total", &["$.part.net"], 0.0)];
    let refused = || Reply::fault(Fault::new(FaultKind::SchemaRefused, "no const"));
    let part = || Reply::text(r#"{"part": {"net": 5}}"#);
    let whole = || Reply::text(r#"{"part": {"net": 5}, "total": 5}"#);
    for (replies, is_staged) in [
        (vec![part(), whole()], true),
        (vec![refused(), whole()], false),
        (vec![part(), refused(), whole()], false),
        (vec![Reply::text("<think>5</think> {}"), whole()], false),
        (vec![Reply::text(r#"{"part": {}}"#), whole()], false),
    ] {
        let server =
            Arc::new(Scripted::new(replies).with_capabilities(Capabilities::new(Enforcement::Schema)));
        let staged = Stages.wrap(Arc::<Scripted>::clone(&server));
        let call = call(schema.clone(), &rules);
        let completion = staged.call(&call).await.unwrap().collect().await.unwrap();
        assert_eq!(completion.text, r#"{"part": {"net": 5}, "total": 5}"#);
        let last = server.calls().pop().unwrap();
        assert_eq!(last.schema() != call.schema(), is_staged, "{:?}", last.schema());
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_has_told_the_tokens_of_its_stages() {
    let schema = object(&json!({"net": number(0, 500), "total": number(0, 900)}));
    let stage = Completion::new(r#"{"net": 5}"#).with_usage(Usage::new(7, 3));
    let server = Scripted::new([Reply::completion(stage), Reply::text(r#"{"net": 5, "total": 5}"#)]);
    let server = Arc::new(server.with_capabilities(Capabilities::new(Enforcement::Schema)));
    let staged = Stages.wrap(Arc::<Scripted>::clone(&server));
    let call = call(schema, &[sum("$.total", &["$.net"], 0.0)]);
    let mut answer = staged.call(&call).await.unwrap();
    let first = futures_util::StreamExt::next(&mut answer).await.unwrap().unwrap();
    assert_eq!((first, server.calls().len()), (Delta::Probe { usage: Usage::new(7, 3) }, 1));
}

#[test]
fn a_provider_that_enforces_no_schema_stays_as_it_is() {
    for enforcement in [Enforcement::None, Enforcement::JsonObject, Enforcement::Tool] {
        let server = Scripted::new(["{}"]).with_capabilities(Capabilities::new(enforcement));
        assert!(!Stages.wrap(Arc::new(server)).capabilities().rules, "{enforcement:?}");
    }
}

proptest! {
    #[test]
    fn a_weighted_sum_always_holds(
        weights in prop::collection::vec(0.1..4.0f64, 1..6),
        least in 0..50i64,
        tolerance in 1.0..30.0f64,
    ) {
        let names: Vec<String> = (0..weights.len()).map(|at| format!("part {at}")).collect();
        let parts: Map<String, Value> = names.iter().map(|name| (name.clone(), number(least, 100))).collect();
        let schema = object(&json!({"parts": object(&parts.into()), "score": number(0, 100_000), "why": {"type": "string"}}));
        let term = |(name, weight): (&String, &f64)| Term { path: path("$.parts").key(name.as_str()).into(), weight: *weight };
        let terms = names.iter().zip(&weights).map(term).collect();
        let rule = Rule::WeightedSum { target: path("$.score").into(), terms, tolerance };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (calls, document) in runtime.block_on(asked(&schema, std::slice::from_ref(&rule))) {
            let mut report = Report::default();
            rule.validate(&document, &Context::EMPTY, &mut report);
            prop_assert!(report.is_empty(), "{document}");
            prop_assert_eq!(calls, 2);
        }
    }
}
