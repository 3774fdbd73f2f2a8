import { expect } from 'chai';
import { eventCodeOf, LOG_EVENTS } from '../../src/contracts/log-events.ts';
import { keptWireNames, wireNames } from '../../script/wire-names.ts';

/**
 * What was released keeps its name: a replica of the version before, a stored record, an alert rule
 * and a client know it by that. CONTRIBUTING.md, names on the wire, says how one may change.
 */
describe('names on the wire', () => {
  const now = wireNames();
  const kept = keptWireNames();

  it('are listed by what they belong to', () => {
    expect(Object.keys(now)).to.deep.equal(Object.keys(kept));
  });

  for (const [kind, names] of Object.entries(now)) {
    const before = new Set(kept[kind]);

    it(`${kind}: none is lost or renamed`, () => {
      const there = new Set(names);
      expect([...before].filter((name) => !there.has(name))).to.deep.equal([]);
    });

    it(`${kind}: none is there that the list lacks (script/wire-names.ts writes it)`, () => {
      expect(names.filter((name) => !before.has(name))).to.deep.equal([]);
    });

    it(`${kind}: there are some`, () => {
      expect(names.length).to.be.greaterThan(10);
    });
  }

  it('has a code for each event of the log, and an event for each code', () => {
    const codes = new Map(
      (now['log events'] ?? [])
        .filter((event) => !event.includes('${'))
        .map((event) => [event, eventCodeOf(event)]),
    );

    expect([...codes].filter(([, code]) => code === undefined)).to.deep.equal([]);
    expect(
      Object.keys(LOG_EVENTS).filter((code) => ![...codes.values()].includes(code)),
    ).to.deep.equal([]);
    for (const code of codes.values()) expect(code).to.match(/^[a-z]+(-[a-z]+)+$/);
  });
});
