//! Sources that a stream names again with each chunk: an answer keeps each of them once.

use serde_json::{Value, json};
use test_support::gemini_chunks::{chunk, last};
use values::json::RawJson;
use values::message::{Citation, ContentPart, TextPart};

use super::gemini::support::stream as gemini;
use super::openai_chat::decoder::stream as chat;
use super::support::error;

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

#[test]
fn chat_stores_sources_that_each_chunk_repeats_once() {
    let sources: Vec<_> = (0..10)
        .map(|source| format!(r#"{{"url":"https://h/{source}"}}"#))
        .collect();
    let citation = |source: &String| Citation(RawJson::new(source.as_str()));
    let cited = |text: String, sources: &[String]| {
        ContentPart::Text(TextPart {
            text,
            citations: sources.iter().map(citation).collect(),
            signature: None,
        })
    };
    // More than an answer may have, were each counted each time.
    let chunks = (0..2_000).map(|chunk| {
        let named = sources[..=(chunk / 10).min(9)].join(",");
        format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"x","annotations":[{named}]}}}}]}}"#)
    });
    let chunks: Vec<_> = chunks.chain([STOP.to_owned()]).collect();
    let chunks: Vec<_> = chunks.iter().map(String::as_str).collect();
    let response = chat(&chunks).1.unwrap();
    assert_eq!(response.content, [cited("x".repeat(2_000), &sources)]);

    // In blocks of the content as well, and at the words that were the last when it first came.
    let block = |source: usize| {
        let source = &sources[source];
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":[{{"type":"text","text":"x","annotations":[{source}]}}]}}}}]}}"#
        )
    };
    let picture = r#"{"choices":[{"index":0,"delta":{"content":[{"type":"image"}]}}]}"#;
    let chunks = [
        block(0),
        block(0),
        picture.to_owned(),
        block(0),
        block(1),
        STOP.to_owned(),
    ];
    let response = chat(&chunks.each_ref().map(String::as_str)).1.unwrap();
    assert_eq!(response.content[0], cited("xx".to_owned(), &sources[..1]));
    assert_eq!(response.content[2], cited("xx".to_owned(), &sources[1..2]));

    let many = (0..16_385)
        .map(|source| source.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let many = format!(r#"{{"choices":[{{"index":0,"delta":{{"annotations":[{many}]}}}}]}}"#);
    assert_eq!(error(chat(&[&many])).1, "the response has more than 16384 parts");
}

#[test]
fn gemini_stores_sources_that_each_chunk_repeats_once() {
    let sources: Vec<_> = (0..10)
        .map(|source| json!({"uri": format!("https://h/{source}")}))
        .collect();
    let grounding = json!({"webSearchQueries": ["q"]});
    let with = |mut chunk: Value, sources: &[Value]| {
        let candidate = &mut chunk["candidates"][0];
        candidate["citationMetadata"] = json!({"citationSources": sources});
        candidate["groundingMetadata"] = grounding.clone();
        chunk
    };
    // More than an answer may have, were each counted each time.
    let chunks = (0..2_000).map(|number| with(chunk(&[json!({"text": "x"})]), &sources[..=(number / 10).min(9)]));
    let chunks: Vec<_> = chunks.chain([with(last(&[], "STOP"), &sources)]).collect();
    let mut all = vec![sources[0].to_string(), grounding.to_string()];
    all.extend(sources[1..].iter().map(Value::to_string));
    let cited = ContentPart::Text(TextPart {
        text: "x".repeat(2_000),
        citations: all.into_iter().map(|source| Citation(RawJson::new(source))).collect(),
        signature: None,
    });
    assert_eq!(gemini(&chunks).1.unwrap().content, [cited]);
}
