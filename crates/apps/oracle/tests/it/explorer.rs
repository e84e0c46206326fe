//! Exports of block explorers (finding B4: users have these instead of our own format).

use std::sync::{Arc, Mutex};

use formwork_oracle::wallet::{Category, Reader, RiskFlag, Summary, Wallet};
use proptest::prelude::*;
use serde_json::{Value, json};

const OWNER: &str = "0x00000000000000000000000000000000000000aa";
const ROUTER: &str = "0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D";
const MIXER: &str = "0xd90e2f925DA726b50C4Ed8D0Fb90Ad053324F31b";

const HEADER: &str = r#""Transaction Hash","Blockno","UnixTimestamp","DateTime (UTC)","From","To","ContractAddress","Value_IN(ETH)","Value_OUT(ETH)","CurrentValue @ $3,456.78/Eth","TxnFee(ETH)","TxnFee(USD)","Historical $Price/Eth","Status","ErrCode","Method""#;

/// Returns a reader and its notices.
fn reader() -> (Reader, Arc<Mutex<Vec<String>>>) {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&notices);
    (Reader::new().with_notices(move |message| kept.lock().unwrap().push(message.to_owned())), notices)
}

fn csv(text: &str) -> (Wallet, Vec<String>) {
    let (reader, notices) = reader();
    let wallet = reader.csv(text.as_bytes(), "export.csv").unwrap();
    let notices = notices.lock().unwrap().clone();
    (wallet, notices)
}

#[test]
fn an_export_as_csv_is_a_wallet() {
    let rows = [
        format!(
            r#""0x3","30","1709251200","2024-03-01 00:00:00","{OWNER}","{MIXER}","","0","1","$3,456.78","0.001","","2000","Success","","Deposit""#
        ),
        format!(
            r#""0x2","20","1709164800","2024-02-29 00:00:00","{OWNER}","{ROUTER}","","0","0.5","$1,728.39","0.001","$2.00","$3,000.50","Error(0)","Reverted","Swap Exact ETH For Tokens""#
        ),
        format!(
            r#""0x1","10","1704067200","2024-01-01 00:00:00","0xBB","{}","","1.5","0","$5,185.17","0.001","N/A","","","","Transfer""#,
            OWNER.to_uppercase().replacen("0X", "0x", 1)
        ),
        format!(
            r#""0x0","9","1704067300","2024-01-01 00:00:00","{OWNER}","","0xCC","0","0","$0.00","0","","","","","0x60806040""#
        ),
    ];
    let (wallet, notices) = csv(&format!("{HEADER}\r\n{}\r\n", rows.join("\r\n")));
    let Summary { transactions, failed, active_days, counterparties, volume_usd, largest_usd, .. } =
        wallet.summary;
    assert_eq!((transactions, failed, active_days, counterparties), (4, 1, 3, 4));
    // The price of the day, otherwise the present price.
    assert_eq!((volume_usd.cents(), largest_usd.cents()), (150_025 + 200_000 + 518_517, 518_517));
    assert_eq!(wallet.address.as_deref(), Some(OWNER));
    let kinds = &wallet.summary.categories;
    assert_eq!((kinds[&Category::Swap], kinds[&Category::Transfer], kinds[&Category::Contract]), (1, 1, 2));
    assert_eq!(wallet.summary.protocols.keys().collect::<Vec<_>>(), ["Tornado Cash", "Uniswap"]);
    assert_eq!(wallet.summary.risk_flags[&RiskFlag::Mixer], 1);
    assert_eq!(notices, [""; 0]);

    let odd = format!("{HEADER},\"Mood\"\n{},\"good\"\n", rows[0]);
    let (_, notices) = csv(&odd);
    assert_eq!(notices, ["columns that are not used: \"Mood\""]);
    // Tokens have a value in dollars of the day only.
    let tokens = format!(
        "\"Transaction Hash\",\"Blockno\",\"UnixTimestamp\",\"DateTime (UTC)\",\"From\",\"To\",\"TokenValue\",\
         \"USDValueDayOfTx\",\"ContractAddress\",\"TokenName\",\"TokenSymbol\"\n\
         \"0x1\",\"1\",\"1704067200\",\"2024-01-01\",\"0xBB\",\"{OWNER}\",\"1,000\",\"$999.50\",\"0xCC\",\"USD Coin\",\"USDC\"\n"
    );
    let (wallet, notices) = csv(&tokens);
    assert_eq!((wallet.summary.volume_usd.cents(), notices.len()), (99_950, 0));
}

#[test]
fn columns_of_our_own_lists_that_are_not_used_are_listed() {
    let (wallet, notices) = csv("time,gas,value_usd,nonce\n2024-01-01,21000,5,1\n");
    assert_eq!((wallet.summary.transactions, wallet.summary.volume_usd.cents()), (1, 500));
    let expected = "columns that are not used: \"gas\", \"nonce\" (those that are: time, category, protocol, counterparty, \
                    value_usd, failed and risk_flags)";
    assert_eq!(notices, [expected]);
}

fn tx(time: u64, from: &str, to: &str, wei: Value, more: Value) -> Value {
    let mut tx = json!({
        "blockNumber": "1", "timeStamp": time.to_string(), "hash": "0x1", "nonce": "0", "from": from, "to": to,
        "value": wei, "gas": "21000", "isError": "0", "txreceipt_status": "1", "input": "0x", "contractAddress": "",
        "confirmations": "9", "methodId": "0x", "functionName": "",
    });
    for (name, value) in more.as_object().unwrap() {
        tx[name] = value.clone();
    }
    tx
}

#[test]
fn an_answer_to_txlist_is_a_wallet_in_every_shape() {
    let list = json!([
        tx(
            1_709_164_800,
            OWNER,
            ROUTER,
            json!("500000000000000000"),
            json!({
                "functionName": "swapExactETHForTokens(uint256 amountOutMin, address[] path)", "methodId": "0x7ff36ab5",
                "isError": "1", "txreceipt_status": "0",
            })
        ),
        tx(1_704_067_200, "0xBB", OWNER, json!(1_000_000_000_000_000_000_u64), json!({})),
        tx(1_704_067_300, "0xCC", OWNER, json!("0xde0b6b3a7640000"), json!({"functionName": null})),
        tx(1_704_067_400, OWNER, "", json!(""), json!({"contractAddress": "0xDD", "methodId": "0x60806040"})),
    ]);
    let answer = json!({"status": "1", "message": "OK", "result": list});
    let mut hashes = Vec::new();
    for document in [&list, &answer, &json!({"jsonrpc": "2.0", "id": 1, "result": list})] {
        let (reader, notices) = reader();
        let mut reader = reader;
        reader.price = Some(2000.0);
        let wallet = reader.slice(document.to_string().as_bytes()).unwrap();
        assert_eq!(reader.json(document.to_string().as_bytes(), "a.json").unwrap(), wallet);
        let Summary { transactions, failed, counterparties, volume_usd, categories, .. } = &wallet.summary;
        assert_eq!((*transactions, *failed, *counterparties, volume_usd.cents()), (4, 1, 4, 500_000));
        assert_eq!((categories[&Category::Swap], categories[&Category::Transfer]), (1, 2));
        assert_eq!(wallet.address.as_deref(), Some(OWNER));
        assert!(notices.lock().unwrap().is_empty());
        hashes.push(wallet.hash());
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1);
    // Without a price the amounts are unknown, and a notice says so.
    let (reader, notices) = reader();
    let wallet = reader.slice(answer.to_string().as_bytes()).unwrap();
    assert_eq!(wallet.summary.volume_usd.cents(), 0);
    assert!(notices.lock().unwrap()[0].contains("the value of 3 transactions counts as 0 dollars"));
    // Longer than one read.
    let long =
        Value::from_iter((0..4000).map(|nth| tx(1_704_067_200 + nth, OWNER, "0xBB", json!("1"), json!({}))));
    assert!(long.to_string().len() > 1 << 20);
    assert_eq!(Reader::new().json(long.to_string().as_bytes(), "a.json").unwrap().summary.transactions, 4000);
    let none = br#"{"status":"0","message":"No transactions found","result":[]}"#;
    assert_eq!(Reader::new().slice(none).unwrap().summary.transactions, 0);
}

#[test]
fn what_cannot_be_imported_is_refused_by_its_place() {
    let one = |name: &str, value: Value| {
        json!([tx(1, OWNER, "0xBB", json!("1"), json!({name: value}))]).to_string()
    };
    for (json, error) in [
        (
            r#"{"status":"0","message":"NOTOK","result":"Max rate limit reached"}"#.to_owned(),
            "a.json: $.result: the explorer answered NOTOK: \"Max rate limit reached\"",
        ),
        (one("timeStamp", json!("soon")), "a.json: $[0]: timeStamp: \"soon\" is no number of seconds"),
        (one("value", json!("-1")), "a.json: $[0]: value: \"-1\" is no number of wei"),
        (one("value", json!({})), "a.json:1:"),
        ("[{}]".to_owned(), "a.json:1:3: $[0]: missing field `timeStamp`"),
        ("[1]".to_owned(), "a.json:1:2: $[0]: invalid type"),
        (
            json!([
                tx(1_704_067_200, "0xA", "0xB", json!("1"), json!({})),
                tx(1_704_067_201, "0xC", "0xD", json!("1"), json!({}))
            ])
            .to_string(),
            "a.json: no address has a part in all transactions",
        ),
    ] {
        let message = Reader::new().json(json.as_bytes(), "a.json").unwrap_err().to_string();
        assert!(message.starts_with(error), "{json}: {message}");
    }
    // An explicit owner has a part, and does not claim the transactions between other addresses.
    let two = json!([
        tx(1_704_067_200, "0xA", "0xB", json!("1"), json!({})),
        tx(1_704_067_201, "0xC", "0xD", json!("1"), json!({}))
    ]);
    let mut reader = Reader::new();
    reader.address = Some("0xA".to_owned());
    let wallet = reader.slice(two.to_string().as_bytes()).unwrap();
    assert_eq!((wallet.address.as_deref(), wallet.summary.transactions), (Some("0xA"), 1));
    for (address, says) in [("0xE", "0xE has no part in any of 2 transactions"), ("b a", "is no address")] {
        reader.address = Some(address.to_owned());
        let error = reader.slice(two.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{address}: {error}");
    }
    let row = format!(r#""0x1","1","soon","","{OWNER}","0xBB","","0","0","","","","","","","Transfer""#);
    let message =
        Reader::new().csv(format!("{HEADER}\n{row}\n").as_bytes(), "a.csv").unwrap_err().to_string();
    assert!(message.starts_with("a.csv:2: UnixTimestamp: \"soon\" is no number of seconds"), "{message}");
}

proptest! {
    /// The order of rows and the format of the export do not change the wallet.
    #[test]
    fn rows_in_any_order_are_the_same_wallet(
        rows in prop::collection::vec((0_u64..100_000_000, 1_u8..5, any::<bool>(), 0_u64..2_000, any::<bool>()), 1..30),
        seed in any::<u64>(),
    ) {
        let document = |rows: &[(u64, u8, bool, u64, bool)]| {
            let list = rows.iter().map(|(time, other, is_out, milli, failed)| {
                let other = format!("0xb{other}");
                let (from, to) = if *is_out { (OWNER, other.as_str()) } else { (other.as_str(), OWNER) };
                let wei = json!(format!("{milli}000000000000000"));
                tx(1_600_000_000 + time, from, to, wei, json!({"isError": u8::from(*failed).to_string()}))
            });
            Value::from_iter(list).to_string()
        };
        let mut reader = Reader::new();
        (reader.address, reader.price) = (Some(OWNER.to_owned()), Some(1000.0));
        let wallet = reader.slice(document(&rows).as_bytes()).unwrap();
        let mut mixed = rows.clone();
        mixed.sort_by_key(|row| row.0.wrapping_mul(seed | 1));
        prop_assert_eq!(reader.slice(document(&mixed).as_bytes()).unwrap(), wallet.clone());
        prop_assert_eq!(wallet.summary.transactions, rows.len() as u64);
        prop_assert_eq!(wallet.summary.failed, rows.iter().filter(|row| row.4).count() as u64);
        prop_assert_eq!(wallet.summary.volume_usd.cents(), rows.iter().map(|row| row.3 * 100).sum::<u64>());
    }
}
