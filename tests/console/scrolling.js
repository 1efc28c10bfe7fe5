// Scrolls through long lists, and counts the elements of the page meanwhile.

/** How many places are looked at, at most. */
const PLACES = 200;

export const countElements = (page) => page.evaluate(() => document.querySelectorAll('*').length);

/** Scrolls from the top to the end of a box. Returns the most elements that the page had at any place. */
export function scrollThrough(page, box) {
  return page.evaluate(async ([selector, places]) => {
    const element = document.querySelector(selector);
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const size = Math.max(0.7 * element.clientHeight, element.scrollHeight / places);
    let most = 0;
    for (let top = 0; ; top += size) {
      element.scrollTop = top;
      // The page draws the rows with the first frame, and measures them with the second.
      await frame();
      await frame();
      most = Math.max(most, document.querySelectorAll('*').length);
      if (top >= element.scrollHeight - element.clientHeight) return most;
    }
  }, [box, PLACES]);
}
