// Reads the events of a run. `EventSource` can't send a body or a key, so they come from `fetch`.

const TERMINAL = ['run.completed', 'run.stopped', 'run.waiting', 'run.failed', 'run.cancelled'];

/**
 * Yields the events of a run up to its terminal event. Throws an error if the connection is lost
 * before. Comments, which keep the connection alive, have no data.
 */
export async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let rest = ''; ;) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (done) throw new Error('The connection was lost.');
      const frames = (rest + value).split('\n\n');
      rest = frames.pop();
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame);
        const event = data && JSON.parse(data[1]);
        if (event?.type === 'stream.dropped') throw new Error(`The connection was lost: ${event.data.reason}.`);
        if (event) yield event;
        if (TERMINAL.includes(event?.type)) return;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
