// The parts that the scripts for Node.js share. See common.py.

export const WEATHER = 'Returns the weather of a city.';
export const CITY = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
};
export const SKY = 'sunny';
export const BERN = { city: 'Bern', degrees: 21 };

/** Plays the scenario that the command line names, at the address that it gives. */
export async function play(scenarios) {
  const [name, address] = process.argv.slice(2);
  await scenarios[name](address);
}
