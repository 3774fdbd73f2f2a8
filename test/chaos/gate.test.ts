import { expect } from 'chai';
import { Gate } from '../support/chaos/gate.ts';

describe('a gate', () => {
  it('is closed once what is inside is done, and lets nobody in until it is open', async () => {
    const gate = new Gate();
    const told: string[] = [];
    let finish = (): void => undefined;
    const first = gate.through(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
    );
    const closed = gate.close(10_000).then((isEmpty) => {
      told.push(`closed: ${isEmpty}`);
    });
    const second = gate.through(async () => {
      told.push('in');
    });
    told.push('finishes');
    finish();
    await Promise.all([first, closed]);
    expect(told).to.deep.equal(['finishes', 'closed: true']);
    gate.open();
    await second;
    expect(told).to.deep.equal(['finishes', 'closed: true', 'in']);
  });

  it('says so where somebody stays inside', async () => {
    const gate = new Gate();
    let finish = (): void => undefined;
    const inside = gate.through(
      () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
    );
    expect(await gate.close(5)).to.equal(false);
    finish();
    await inside;
  });
});
