//! The model that a request is for, and which parts of a history it can read.

use std::collections::VecDeque;
use std::sync::Arc;

use super::capability_settings::{Capabilities, Files};
use super::files::{Attachment, as_words, inline_data};
use agent::ports::ModelRequest;
use values::message::{ContentPart, MediaSource, Message, OpaquePart, Role, picture_side};
use values::session::Fold;

/// From this side on, in pixels, a picture counts as large.
const LARGE_SIDE: usize = 2_000;
/// The types of pictures that all models accept that see pictures.
const PICTURE_TYPES: [&str; 5] = ["image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"];

/// The model that a request is for.
///
/// Signatures, encrypted reasoning and blocks of a provider's own tools are valid for the model
/// that made them. Another model of the same provider may refuse them, and the session with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    provider: Arc<str>,
    model: Arc<str>,
    /// The capabilities of the model.
    pub(super) can: Capabilities,
    /// The number of pictures and files at the beginning that are too many.
    left_out: usize,
}

impl Target {
    /// Makes the target of a request to a provider.
    pub(super) fn of(request: &ModelRequest, provider: &str, can: Capabilities) -> Self {
        let target = Self {
            provider: provider.into(),
            model: request.model.as_str().into(),
            can,
            left_out: 0,
        };
        let media = request.messages.fold(RetainedMedia::new(target.clone()));
        Self {
            left_out: media.left_out,
            ..target
        }
    }

    /// Returns whether this model made the message. Marks of a message return only to their maker.
    pub(super) fn made(&self, message: &Message) -> bool {
        let owner = message.provider_fields.as_ref();
        owner.is_some_and(|owner| *owner.provider == *self.provider && owner.model.as_deref() == Some(&*self.model))
    }

    /// Returns whether this model made the part of the message.
    pub(super) fn made_part(&self, message: &Message, part: &OpaquePart) -> bool {
        *part.provider == *self.provider && self.made(message)
    }

    /// Returns a picture or a file in the form for this model; `None` for any other part. `seen`
    /// counts the pictures and files of the conversation so far.
    pub(super) fn attachment<'a>(&self, part: &'a ContentPart, seen: &mut usize) -> Option<Attachment<'a>> {
        let attachment = Attachment::of(part)?;
        let attachment = match self.words_instead(&attachment) {
            Some(words) => return Some(Attachment::Words(words)),
            None => attachment,
        };
        *seen += 1;
        Some(if *seen <= self.left_out {
            let what = attachment.what();
            Attachment::Words(format!("[{what}, left out: later pictures and files fill the request]"))
        } else {
            attachment
        })
    }

    /// Returns the words that replace a picture or a file which the model does not take.
    fn words_instead(&self, attachment: &Attachment<'_>) -> Option<String> {
        let source = attachment.source()?;
        if let MediaSource::ProviderFile { provider, .. } = source
            && **provider != *self.provider
        {
            return Some(attachment.elsewhere(provider));
        }
        if let Attachment::Document(part) = attachment
            && let Some(words) = as_words(part)
        {
            return (self.can.files == Some(Files::None)).then_some(words);
        }
        let reason = match attachment {
            Attachment::Image(_) => self.refusal_of_picture(source)?,
            _ => self.refusal_of_file(source)?,
        };
        Some(format!("[{}, left out: {reason}]", attachment.what()))
    }

    fn refusal_of_picture(&self, source: &MediaSource) -> Option<String> {
        let can = &self.can;
        if can.pictures == Some(false) {
            return Some("this model takes no pictures".to_owned());
        }
        let (media_type, data) = inline(source)?;
        let is_known = PICTURE_TYPES.contains(&media_type) || (can.files == Some(Files::All) && is_apple(media_type));
        if !is_known {
            return Some(format!("this model takes no pictures of the type {media_type}"));
        }
        if let Some(most) = can.max_picture_bytes.filter(|most| data.len() > *most) {
            return Some(format!("its {} bytes of base64 are more than {most}", data.len()));
        }
        let most = can.max_picture_side?;
        let side = picture_side(data).filter(|side| *side > most)?;
        Some(format!("a side of {side} pixels is longer than {most}"))
    }

    fn refusal_of_file(&self, source: &MediaSource) -> Option<String> {
        let files = self.can.files.unwrap_or_default();
        if files == Files::None {
            return Some("this model takes no files".to_owned());
        }
        let (media_type, _) = inline(source)?;
        let needed = match media_type.split('/').next() {
            _ if media_type == "application/pdf" => Files::Pdf,
            Some("audio" | "video") => Files::All,
            _ => Files::Documents,
        };
        (files < needed).then(|| format!("this model takes no files of the type {media_type}"))
    }
}

/// Returns the type and the base64 text of an inline source.
fn inline(source: &MediaSource) -> Option<(&str, &str)> {
    match source {
        MediaSource::Base64 { media_type, data } => Some((media_type, data)),
        MediaSource::Url { url } => inline_data(url),
        MediaSource::ProviderFile { .. } => None,
    }
}

/// Returns whether a picture has a type that cameras of Apple write.
fn is_apple(media_type: &str) -> bool {
    matches!(media_type, "image/heic" | "image/heif")
}

/// Counts which of the first pictures and files of a request are too many.
///
/// If one more does not fit, half of the limit becomes free at once. So the beginning of requests
/// changes rarely, and the provider's prompt cache serves it in between.
#[derive(Debug, Clone)]
struct RetainedMedia {
    target: Target,
    retained: VecDeque<MediaCount>,
    /// The sum of the retained ones.
    sum: MediaCount,
    left_out: usize,
}

/// Numbers of pictures and files.
#[derive(Debug, Clone, Copy, Default)]
struct MediaCount {
    pictures: usize,
    large_pictures: usize,
    files: usize,
    bytes: usize,
}

impl MediaCount {
    fn of(attachment: &Attachment<'_>) -> Self {
        let is_picture = matches!(attachment, Attachment::Image(_));
        let data = attachment.source().and_then(inline).map_or("", |(_, data)| data);
        let is_large = is_picture && picture_side(data).is_some_and(|side| side > LARGE_SIDE);
        Self {
            pictures: is_picture.into(),
            large_pictures: is_large.into(),
            files: (!is_picture).into(),
            bytes: data.len(),
        }
    }

    /// Returns whether the media fit into this part of the limits.
    fn fits(&self, can: &Capabilities, part: usize) -> bool {
        let is_within = |count: usize, most: Option<usize>| most.is_none_or(|most| count <= most / part);
        is_within(self.pictures, can.max_pictures)
            && (self.large_pictures == 0 || is_within(self.pictures, can.max_pictures_with_large))
            && is_within(self.files, can.max_files)
            && is_within(self.bytes, can.max_media_bytes)
    }

    fn change(&mut self, by: Self, step: fn(usize, usize) -> usize) {
        self.pictures = step(self.pictures, by.pictures);
        self.large_pictures = step(self.large_pictures, by.large_pictures);
        self.files = step(self.files, by.files);
        self.bytes = step(self.bytes, by.bytes);
    }
}

impl RetainedMedia {
    fn new(target: Target) -> Self {
        Self {
            target,
            retained: VecDeque::new(),
            sum: MediaCount::default(),
            left_out: 0,
        }
    }

    fn add(&mut self, part: &ContentPart) {
        let Some(attachment) = self.target.attachment(part, &mut 0) else {
            return;
        };
        if matches!(attachment, Attachment::Words(_)) {
            return;
        }
        let count = MediaCount::of(&attachment);
        self.sum.change(count, usize::saturating_add);
        self.retained.push_back(count);
        if self.sum.fits(&self.target.can, 1) {
            return;
        }
        while !self
            .sum
            .fits(&self.target.can, if self.retained.len() > 1 { 2 } else { 1 })
            && let Some(oldest) = self.retained.pop_front()
        {
            self.sum.change(oldest, usize::saturating_sub);
            self.left_out += 1;
        }
    }
}

impl Fold for RetainedMedia {
    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        let asked = messages.filter(|message| matches!(message.role, Role::User | Role::Tool));
        for message in asked {
            // The encoders send results before the other parts of a message.
            message
                .tool_results()
                .flat_map(|result| &result.content)
                .for_each(|part| self.add(part));
            message.content.iter().for_each(|part| self.add(part));
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.retained.len() * size_of::<MediaCount>()
    }
}
