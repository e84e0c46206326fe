fn main() {
    let a: Vec<String> = std::env::args().collect();
    let v: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&a[1]).unwrap()).unwrap();
    let s = v.get("schema").unwrap_or(&v);
    let l = formwork_dialect::dialect(&a[2]).unwrap().lower(&formwork_core::LowerRequest::new(s)).unwrap();
    println!("{}", l.schema.map(|s| s.to_string()).unwrap_or_default());
    for x in l.losses {
        eprintln!("{x}");
    }
    println!("{:?}", l.shown);
    for o in l.lift {
        eprintln!("{o}");
    }
}
