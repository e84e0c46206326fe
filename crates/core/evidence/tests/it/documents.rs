//! Documents with values at known places.

use formwork_evidence::{Index, Summary};
use formwork_json::JsonPath;
use serde_json::{Value, json};

/// A generator of pseudo-random numbers (SplitMix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % u64::try_from(end).unwrap()).unwrap()
    }

    pub(crate) fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// A document: its text, the value that a model would extract, and the place of each leaf in scalar values.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) text: String,
    pub(crate) value: Value,
    pub(crate) schema: Option<Value>,
    pub(crate) places: Vec<(JsonPath, usize, usize)>,
}

impl Document {
    /// Appends a text.
    pub(crate) fn say(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends the text of the leaf at a path.
    pub(crate) fn leaf(&mut self, path: &str, text: &str) {
        let start = self.text.chars().count();
        self.text.push_str(text);
        self.places.push((path.parse().unwrap(), start, start + text.chars().count()));
    }

    /// Returns how many leaves have their known place, and all of them; prints the others.
    pub(crate) fn score(&self, kind: &str) -> (usize, usize) {
        let evidence = Index::new(&self.text).evidence(&self.value, self.schema.as_ref());
        let summary = Index::new(&self.text).summary(&self.value, self.schema.as_ref());
        assert_eq!(summary, Summary::of(&evidence, &self.value), "{kind}: {}", self.value);
        let length = self.text.chars().count();
        for it in &evidence {
            for span in &it.spans {
                assert!(span.start < span.end && span.end <= length, "{kind}: {it:?}");
            }
        }
        let mut right = 0;
        for (path, start, end) in &self.places {
            let found = evidence.iter().find(|it| it.path == *path).unwrap();
            let first = found.spans.first();
            if first.is_some_and(|span| span.start < *end && *start < span.end) {
                right += 1;
            } else if std::env::var_os("SHOW").is_some() {
                println!(
                    "{kind}: {path} {:?}: expected {start}..{end}, found {:?} {first:?}",
                    path.get(&self.value),
                    found.status
                );
            }
        }
        (right, self.places.len())
    }
}

/// Writes a number in one of the usual notations.
pub(crate) fn notation(random: &mut Random, cents: usize) -> String {
    let (whole, rest) = (cents / 100, cents % 100);
    let grouped = |mark: &str| match whole {
        0..1000 => whole.to_string(),
        _ => format!("{}{mark}{:03}", whole / 1000, whole % 1000),
    };
    match random.below(4) {
        0 => format!("{}.{rest:02}", grouped(",")),
        1 => format!("{},{rest:02}", grouped(".")),
        2 => format!("{},{rest:02}", grouped(" ")),
        _ => format!("{whole}.{rest:02}"),
    }
}

fn number(cents: usize) -> Value {
    let text = format!("{}.{:02}", cents / 100, cents % 100);
    serde_json::from_str(&text).unwrap()
}

/// The words of a language for an invoice.
struct Words {
    goods: [&'static str; 6],
    names: [&'static str; 4],
    labels: [&'static str; 8],
}

const LANGUAGES: [Words; 6] = [
    Words {
        goods: ["Blue widget", "Red widget", "Cable 2 m", "Adapter", "Screws (100)", "Blue widget XL"],
        names: ["Northwind Ltd.", "Acme Corp", "Ada Lovelace", "Grace Hopper"],
        labels: ["Invoice number", "Invoice date", "Due date", "Subtotal", "Tax", "Total", "Seller", "Buyer"],
    },
    Words {
        goods: ["青いウィジェット", "赤いウィジェット", "ケーブル", "アダプター", "ねじ", "箱"],
        names: ["北風株式会社", "山田商店", "田中太郎", "鈴木花子"],
        labels: ["請求書番号", "請求日", "支払期限", "小計", "消費税", "合計", "売主", "買主"],
    },
    Words {
        goods: ["قلم أزرق", "قلم أحمر", "كابل", "محول", "براغي", "صندوق"],
        names: ["شركة الشمال", "متجر النور", "ليلى حسن", "عمر خالد"],
        labels: [
            "رقم الفاتورة",
            "تاريخ الفاتورة",
            "تاريخ الاستحقاق",
            "المجموع الفرعي",
            "الضريبة",
            "الإجمالي",
            "البائع",
            "المشتري",
        ],
    },
    Words {
        goods: ["עט כחול", "עט אדום", "כבל", "מתאם", "ברגים", "קופסה"],
        names: ["חברת הצפון", "חנות האור", "דנה לוי", "יוסי כהן"],
        labels: [
            "מספר חשבונית",
            "תאריך חשבונית",
            "תאריך פירעון",
            "סכום ביניים",
            "מע״מ",
            "סך הכל",
            "מוכר",
            "קונה",
        ],
    },
    Words {
        goods: ["🎈 balloon", "🎁 gift 👩‍👩‍👧", "🧵 thread", "🍰 cake", "☕ coffee", "🚀 rocket"],
        names: ["🌍 World Shop", "Café ☀️", "Ana 🙂", "Bo 🙃"],
        labels: ["Invoice number", "Invoice date", "Due date", "Subtotal", "Tax", "Total", "Seller", "Buyer"],
    },
    Words {
        goods: [
            "Cafe\u{301} au lait",
            "Cre\u{300}me bru\u{302}le\u{301}e",
            "Gateau\u{302}x",
            "The\u{301}",
            "Pa\u{302}te",
            "Beurre sale\u{301}",
        ],
        names: [
            "Socie\u{301}te\u{301} Ge\u{301}ne\u{301}rale",
            "E\u{301}picerie du Coin",
            "Zoe\u{308} Le\u{301}ger",
            "Rene\u{301} Noe\u{308}l",
        ],
        labels: [
            "Numéro de facture",
            "Date de facture",
            "Date d'échéance",
            "Sous-total",
            "Taxe",
            "Total",
            "Vendeur",
            "Acheteur",
        ],
    },
];

/// An invoice with a table: columns by spaces, `|`, tabs or commas, or a block of lines for each item. Quantities, prices and
/// totals of different rows are often equal, and so are the total and the subtotal.
pub(crate) fn invoice(random: &mut Random) -> Document {
    let words = &LANGUAGES[random.below(LANGUAGES.len())];
    let mut document = Document::default();
    let english = random.below(3) > 0;
    let members = ["number", "date", "due_date", "subtotal", "tax", "total", "seller", "buyer"];
    let described: serde_json::Map<String, Value> = members
        .iter()
        .zip(words.labels)
        .map(|(name, label)| ((*name).to_owned(), json!({"title": label})))
        .collect();
    document.schema = Some(json!({"properties": described}));
    let id = format!("{}-{}", 2024, 100 + random.below(3));
    let day = 1 + random.below(9);
    let (written, iso) = match random.below(3) {
        0 => (format!("2024-03-0{day}"), format!("2024-03-0{day}")),
        1 => (format!("0{day}.03.2024"), format!("2024-03-0{day}")),
        _ => (format!("{day} March 2024"), format!("2024-03-0{day}")),
    };
    let label = |index: usize| words.labels[index];
    let seller = words.names[random.below(2)];
    let buyer = words.names[2 + random.below(2)];
    for (index, path, text) in [(6, "$.seller", seller), (7, "$.buyer", buyer), (0, "$.number", id.as_str())]
    {
        document.say(&format!("{}: ", label(index)));
        document.leaf(path, text);
        document.say("\n");
    }
    for (index, path) in [(1, "$.date"), (2, "$.due_date")] {
        document.say(&format!("{}: ", label(index)));
        document.leaf(path, &written);
        document.say("\n");
    }
    document.say("\n");
    let rows = 2 + random.below(7);
    let (mut items, mut sum) = (Vec::new(), 0);
    let style = random.below(5);
    let wide = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let header = ["Description", "Qty", "Price", "Amount"];
    match style {
        0 => document.say("Description                 Qty         Price        Amount\n"),
        1 => document.say("| Description | Qty | Price | Amount |\n|---|---|---|---|\n"),
        2 => document.say("Description\tQty\tPrice\tAmount\n"),
        3 => document.say("Description,Qty,Price,Amount\n"),
        _ => {}
    }
    for row in 0..rows {
        let goods = words.goods[random.below(words.goods.len())];
        let (quantity, price) = (1 + random.below(4), 100 * (1 + random.below(4)));
        let amount = quantity * price;
        sum += amount;
        let price_text =
            if style == 3 { format!("{}.{:02}", price / 100, price % 100) } else { notation(random, price) };
        let amount_text = if style == 3 {
            format!("{}.{:02}", amount / 100, amount % 100)
        } else {
            notation(random, amount)
        };
        let cells = [goods.to_owned(), quantity.to_string(), price_text, amount_text];
        let paths =
            ["description", "quantity", "price", "amount"].map(|name| format!("$.items[{row}].{name}"));
        for (column, (cell, path)) in cells.iter().zip(&paths).enumerate() {
            match (style, column) {
                (0, 0) => {}
                (0, 1) => document.say(&wide(&format!("{}{cell}", cells[0]), 31)),
                (0, _) => document.say(&wide(cell, 14)),
                (1, _) => document.say("| "),
                (2, 0) | (3, 0) | (4, 0) => {}
                (2, _) => document.say("\t"),
                (3, _) => document.say(","),
                _ => document.say(&format!("  {}: ", header[column])),
            }
            document.leaf(path, cell);
            match (style, column) {
                (1, 3) => document.say(" |\n"),
                (1, _) => document.say(" "),
                (4, _) | (_, 3) => document.say("\n"),
                _ => {}
            }
        }
        items.push(json!({"description": goods, "quantity": quantity, "price": number(price), "amount": number(amount)}));
    }
    document.say("\n");
    let tax = if random.below(2) == 0 { 0 } else { 100 };
    for (index, path, cents) in [(3, "$.subtotal", sum), (4, "$.tax", tax), (5, "$.total", sum + tax)] {
        document.say(&format!("{}{}", label(index), if random.below(2) == 0 { ": " } else { "      " }));
        let text = notation(random, cents);
        document.leaf(path, &text);
        document.say("\n");
    }
    let (names, values) = (
        members,
        [
            json!(id),
            json!(iso),
            json!(iso),
            number(sum),
            number(tax),
            number(sum + tax),
            json!(seller),
            json!(buyer),
        ],
    );
    let mut value: serde_json::Map<String, Value> =
        names.into_iter().map(str::to_owned).zip(values).collect();
    value.insert("items".to_owned(), items.into());
    if !english {
        // A model may write members in any order.
        value = value.into_iter().rev().collect();
    }
    document.value = value.into();
    document
}

/// A letter between two people with equal cities, dates and names in different roles.
pub(crate) fn letter(random: &mut Random) -> Document {
    let mut document = Document::default();
    let city = random.of(&["Berlin", "Paris", "Lisbon"]);
    let other = if random.below(2) == 0 { city } else { "Madrid" };
    let sender = random.of(&["Maria Lindqvist", "Ada King", "Grace Hopper"]);
    let receiver = random.of(&["Jonas Weber", "Ana Silva", "Bo Chen"]);
    let (day, amount) = (1 + random.below(9), 100 * (1 + random.below(90)));
    let due = if random.below(2) == 0 { day } else { day + 10 };
    document.say("From: ");
    document.leaf("$.sender.name", sender);
    document.say("\nStreet: ");
    document.leaf("$.sender.street", "Main Street 5");
    document.say("\nCity: ");
    document.leaf("$.sender.city", city);
    document.say("\n\nTo: ");
    document.leaf("$.recipient.name", receiver);
    document.say("\nStreet: ");
    document.leaf("$.recipient.street", "Station Road 5");
    document.say("\nCity: ");
    document.leaf("$.recipient.city", other);
    document.say("\n\nLetter date: ");
    document.leaf("$.letter_date", &format!("March {day}, 2024"));
    document.say(&format!("\n\nDear {receiver},\n\nthank you for the order of last week. We will deliver to {other}. The amount due is "));
    document.leaf("$.amount_due", &format!("EUR {}.00", amount));
    document.say(&format!(
        " and includes a deposit of EUR {}.00 that you paid; please pay the rest until the due date, ",
        amount / 2
    ));
    document.leaf("$.due_date", &format!("{due} March 2024"));
    document.say(".\n\nBest regards\n");
    document.say(&format!("{sender}\n{city}\n"));
    document.value = json!({
        "letter_date": format!("2024-03-{day:02}"),
        "due_date": format!("2024-03-{due:02}"),
        "amount_due": amount,
        "sender": {"name": sender, "street": "Main Street 5", "city": city},
        "recipient": {"name": receiver, "street": "Station Road 5", "city": other},
    });
    document
}

/// A list of people in sentences, with equal ages and cities.
pub(crate) fn prose(random: &mut Random) -> Document {
    let mut document = Document::default();
    let chinese = random.below(2) == 0;
    let mut people = Vec::new();
    for index in 0..3 + random.below(5) {
        let (age, path) = (30 + random.below(3), |name: &str| format!("$.people[{index}].{name}"));
        if chinese {
            let (name, city) = (random.of(&["王伟", "李娜", "张敏", "刘洋"]), random.of(&["北京", "上海"]));
            document.leaf(&path("name"), name);
            document.say("今年");
            document.leaf(&path("age"), &age.to_string());
            document.say("岁，住在");
            document.leaf(&path("city"), city);
            document.say("。");
            people.push(json!({"name": name, "age": age, "city": city}));
        } else {
            let (name, city) = (random.of(&["Ana", "Bo", "Cleo", "Dan"]), random.of(&["Rome", "Oslo"]));
            document.leaf(&path("name"), name);
            document.say(" is ");
            document.leaf(&path("age"), &age.to_string());
            document.say(" years old and lives in ");
            document.leaf(&path("city"), city);
            document.say(". ");
            people.push(json!({"name": name, "age": age, "city": city}));
        }
    }
    document.value = json!({"people": people});
    document
}
