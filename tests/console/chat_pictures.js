// Makes the pictures of examples/chat, in a window and on a phone: node chat_pictures.js FOLDER

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { open, start } from './chat_example.js';

const BUDGET = 'tickets,104.40\nlunch,96.00\n';
const PLACES = { question: 'Where do you want to eat?', choices: ['At the lake', 'In the old town', 'On the boat'] };

/** The completions for messages that begin with a word. */
const TALK = {
  What: ({ step, results }) => (step ? { say: `The tickets cost ${Number(results[0]).toFixed(2)} francs.` }
    : { think: 'Three people, two ways.', calls: [['calculator', { expression: '3 * 2 * 17.40' }]] }),
  Save: ({ step }) => (step ? { say: 'It is saved. The sum is 200.40 francs.' }
    : { say: 'May I write it?', calls: [['write_file', { path: 'budget.csv', content: BUDGET }]] }),
  Plan: () => ({ say: 'One question first.', calls: [['ask_user', PLACES]] }),
};

const findings = [];
const all = await start((turn) => TALK[turn.task.split(' ')[0]](turn), 0.5);
for (const title of ['Translate the menu', 'A speech for Grandma', 'Names for a cat']) {
  await all.service.send('POST', '/v1/threads', { title });
}
const page = await open(all, findings);
const picture = (name) => page.screenshot({ path: join(process.argv[2], name) });
const button = (name) => page.getByRole('button', { name, exact: true });
const say = async (text) => {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await button('Send').click();
};
await say('What do tickets to Thun cost?');
await page.getByText('tokens in').waitFor();
await button('Edit').click();
await page.getByLabel('Edited message').fill('What do three return tickets to Thun cost, at 17.40 each way?');
await page.locator('.edit').getByRole('button', { name: 'Send' }).click();
await page.getByText('2/2').waitFor();
const timetable = { name: 'trains.txt', mimeType: 'text/plain', buffer: Buffer.from('10:02 Bern\n10:21 Thun\n') };
await page.getByLabel('Upload a file').setInputFiles(timetable);
await button('trains.txt').waitFor();
await say('Save the budget, with 96 francs for lunch.');
await button('Approve').waitFor();
await page.locator('h1').click();
await picture('chat-light.png');

await page.setViewportSize({ width: 390, height: 844 });
await button('Approve').click();
await page.getByText('It is saved.').first().waitFor();
await button('Send').waitFor();
await say('Plan the lunch.');
await button('On the boat').waitFor();
await page.locator('#log').focus();
await picture('chat-phone.png');
await all.end();
assert.deepEqual(findings, []);
