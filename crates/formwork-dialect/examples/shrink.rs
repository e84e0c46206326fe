use formwork_core::{LowerRequest, lift};
use formwork_dialect::{dialect, lower_value};
use serde_json::Value;
use std::io::BufRead;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let row: Value = std::io::BufReader::new(std::fs::File::open(&args[1]).unwrap())
        .lines()
        .map(|l| l.unwrap())
        .find(|l| l.contains(&args[2]))
        .map(|l| serde_json::from_str(&l).unwrap())
        .unwrap();
    let d = dialect(&args[3]).unwrap();
    let schema = &row["schema"];
    let lowered = d.lower(&LowerRequest::new(schema)).unwrap();
    let original = formwork_schema::compile(schema).unwrap();
    let sent = formwork_schema::compile(lowered.schema.as_ref().unwrap()).unwrap();
    let lost = |v: &Value| {
        original.is_valid(v)
            && !lower_value(v, &lowered).is_some_and(|w| sent.is_valid(&w) && lift(w, &lowered).1.is_empty())
    };
    for i in row["instances"].as_array().unwrap() {
        let mut data = i["data"].clone();
        if i["valid"] != true || !lost(&data) {
            continue;
        }
        loop {
            let Some(smaller) = removals(&data).into_iter().find(|v| lost(v)) else { break };
            data = smaller;
        }
        println!("{data}\n  as {:?}", lower_value(&data, &lowered).map(|v| v.to_string()));
    }
    if args.len() > 4 {
        println!("{}", lowered.schema.unwrap());
    }
}
fn removals(v: &Value) -> Vec<Value> {
    let mut out = vec![];
    match v {
        Value::Object(m) => {
            for k in m.keys() {
                let mut c = m.clone();
                c.shift_remove(k);
                out.push(Value::Object(c));
                for r in removals(&m[k]) {
                    let mut c = m.clone();
                    c.insert(k.clone(), r);
                    out.push(Value::Object(c));
                }
            }
        }
        Value::Array(a) => {
            for k in 0..a.len() {
                let mut c = a.clone();
                c.remove(k);
                out.push(Value::Array(c));
                for r in removals(&a[k]) {
                    let mut c = a.clone();
                    c[k] = r;
                    out.push(Value::Array(c));
                }
            }
        }
        _ => {}
    }
    out
}
