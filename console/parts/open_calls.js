// @ts-check
// How many calls wait for a person. The navigation shows it on every page.

import { signal } from '@preact/signals';
import { get } from '../api.js';
import { onCallsChange } from '../live.js';

/** The number of runs that wait for a person, up to 1,000. */
export const openCalls = signal(0);

/** Counts now, and again when it may have changed. */
export function countOpenCalls() {
  const count = async () => {
    const page = await get('/v1/approvals?limit=1').catch(() => null);
    if (page) openCalls.value = page.total;
  };
  onCallsChange(count);
  void count();
}
