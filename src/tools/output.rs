//! Caps the output of a tool, so that one result fills neither the context nor the history.

use crate::message::{ContentPart, MediaSource};

/// Truncates a result to the limit of bytes and adds a note for the model.
pub(super) fn capped(content: Vec<ContentPart>, max_bytes: usize) -> Vec<ContentPart> {
    let total = content.iter().map(size).fold(0, usize::saturating_add);
    if total <= max_bytes {
        return content;
    }
    let mut left = max_bytes;
    let mut retained = Vec::new();
    for part in content {
        let bytes = size(&part);
        if bytes <= left {
            left -= bytes;
            retained.push(part);
            continue;
        }
        if let Some(text) = part.as_text().filter(|_| left > 0) {
            retained.push(ContentPart::text(&text[..text.floor_char_boundary(left)]));
        }
        break;
    }
    retained.push(ContentPart::text(format!(
        "[The output is cut here: it had {total} bytes, and the limit is {max_bytes}. Ask for less at a time.]"
    )));
    retained
}

fn size(part: &ContentPart) -> usize {
    let media = |source: &MediaSource| match source {
        MediaSource::Url { url } => url.len(),
        MediaSource::Base64 { data, .. } => data.len(),
        MediaSource::ProviderFile { provider, file_id } => provider.len() + file_id.len(),
    };
    match part {
        ContentPart::Text(part) => part.text.len(),
        ContentPart::Image(part) => media(&part.source),
        ContentPart::Document(part) => media(&part.source),
        other => serde_json::to_vec(other).map_or(usize::MAX, |json| json.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::ImagePart;

    fn image(bytes: usize) -> ContentPart {
        ContentPart::Image(ImagePart {
            source: MediaSource::Base64 {
                media_type: "image/png".to_owned(),
                data: "A".repeat(bytes),
            },
            detail: None,
        })
    }

    #[test]
    fn what_fits_is_left_alone() {
        let content = vec![ContentPart::text("abc"), image(7)];
        assert_eq!(capped(content.clone(), 10), content);
        assert_eq!(capped(Vec::new(), 0), Vec::new());
    }

    #[test]
    fn a_text_is_cut_between_characters_and_marked() {
        let content = capped(vec![ContentPart::text("ééé"), ContentPart::text("tail")], 3);
        assert_eq!(content.len(), 2);
        assert_eq!(content[0].as_text(), Some("é"));
        let note = content[1].as_text().unwrap();
        assert!(note.contains("10 bytes") && note.contains("limit is 3"), "{note}");
    }

    #[test]
    fn a_picture_is_never_cut_in_two() {
        let content = capped(vec![ContentPart::text("ab"), image(100), ContentPart::text("tail")], 10);
        assert_eq!(content.len(), 2);
        assert_eq!(content[0].as_text(), Some("ab"));
    }
}
