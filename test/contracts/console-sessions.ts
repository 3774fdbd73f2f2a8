import { expect } from 'chai';
import {
  MAX_CONSOLE_SESSIONS_OF_PERSON,
  type NewConsoleSession,
} from '../../src/contracts/coordination/console-sessions.ts';
import type { CoordinationUnderTest } from './coordination.ts';

/** What ConsoleSessions promises: a part of the suite of Coordination. */
export const consoleSessionsTests = (under: () => CoordinationUnderTest): void => {
  describe('console sessions', () => {
    const open = (id: string, more: Partial<NewConsoleSession> = {}) =>
      under().coordination.openConsoleSession({
        id,
        operator: 'ada',
        value: `of ${id}`,
        idleMs: 60_000,
        lifeMs: 150_000,
        replaces: undefined,
        ...more,
      });
    const use = (id: string) => under().coordination.useConsoleSession(id);
    const ids = async () =>
      (await under().coordination.consoleSessions()).map(({ id }) => id).toSorted();

    it('are found by their ids while they are used', async () => {
      await open('a');
      await under().advance(50_000);
      const first = await use('a');
      await under().advance(50_000);
      const second = await use('a');

      expect(first).to.include({ id: 'a', operator: 'ada', value: 'of a' });
      expect(first && first.endsAt - first.openedAt).to.equal(150_000);
      expect(second && second.seenAt - second.openedAt).to.be.within(100_000, 110_000);
      expect(await use('b')).to.equal(undefined);
    });

    it('end after a time without use', async () => {
      await open('a');
      await under().advance(60_000);

      expect(await ids()).to.deep.equal([]);
      expect(await use('a')).to.equal(undefined);
      expect(await under().coordination.endConsoleSession('a')).to.equal(false);
    });

    it('end at the latest after their maximum lifetime', async () => {
      await open('a');
      for (const step of [50_000, 50_000]) {
        await under().advance(step);
        expect((await use('a'))?.id).to.equal('a');
      }
      await under().advance(50_000);

      expect(await use('a')).to.equal(undefined);
    });

    it('end the session that they replace', async () => {
      await open('a');
      await open('b', { replaces: 'a' });

      expect(await use('a')).to.equal(undefined);
      expect(await ids()).to.deep.equal(['b']);
    });

    it('can be ended one by one, and all at once for a person', async () => {
      for (const id of ['a', 'b', 'c']) await open(id);
      await open('d', { operator: 'bob' });

      expect(await under().coordination.endConsoleSession('a')).to.equal(true);
      expect(await under().coordination.endConsoleSession('a')).to.equal(false);
      expect(await ids()).to.deep.equal(['b', 'c', 'd']);
      expect(await under().coordination.endConsoleSessionsOf('ada')).to.equal(2);
      expect(await ids()).to.deep.equal(['d']);
    });

    it("of one person displace only that person's oldest", async () => {
      await open('other', { operator: 'bob' });
      await open('first');
      await under().advance(10);
      for (let n = 0; n < MAX_CONSOLE_SESSIONS_OF_PERSON; n++) await open(`n${n}`);

      expect(await use('first')).to.equal(undefined);
      expect(await use('other')).to.not.equal(undefined);
      expect(await ids()).to.have.length(MAX_CONSOLE_SESSIONS_OF_PERSON + 1);
    });
  });
};
