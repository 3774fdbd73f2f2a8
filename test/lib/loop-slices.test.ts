import { expect } from 'chai';
import { LoopSlices } from '../../src/lib/loop-slices.ts';

describe('slices of the event loop', () => {
  let now: number;
  let slices: LoopSlices;
  let done: string[];

  beforeEach(() => {
    now = 0;
    done = [];
    slices = new LoopSlices({ now: () => now });
  });

  /** Work that a promise leads to, not the task itself. */
  const task = (name: string, ms: number) => (): void => {
    void Promise.resolve().then(() => {
      now += ms;
      done.push(name);
    });
  };
  const theLoop = (): Promise<void> =>
    new Promise((resolve) => {
      setImmediate(resolve);
    });

  it('lets the loop go round after a few milliseconds of what the tasks lead to', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e']) slices.put(task(name, 2));
    await theLoop();
    expect(done).to.deep.equal(['a', 'b']);
    await theLoop();
    await theLoop();
    expect(done).to.deep.equal(['a', 'b', 'c', 'd', 'e']);
  });

  it('runs cheap tasks in one turn', async () => {
    for (let n = 0; n < 300; n += 1) slices.put(task(String(n), 0));
    await theLoop();
    expect(done).to.have.length(300);
  });

  it('runs a task at once where none waits', () => {
    slices.put(() => done.push('a'));
    expect(done).to.deep.equal(['a']);
  });

  it('keeps the order, also of what tasks put and of what is flushed', async () => {
    slices.put(() => {
      done.push('a');
      slices.put(() => done.push('c'));
    });
    slices.put(() => done.push('d'));
    slices.flush();
    expect(done).to.deep.equal(['a', 'c', 'd']);
    slices.put(() => done.push('e'));
    await theLoop();
    expect(done).to.deep.equal(['a', 'c', 'd', 'e']);
  });
});
