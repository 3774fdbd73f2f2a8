import { expect } from 'chai';
import {
  DEAD_LETTER_MS,
  MAX_DEAD_LETTERS,
  type DeadLetters,
  type KeptDeadLetter,
} from '../../src/contracts/coordination/dead-letters.ts';

export interface DeadLettersUnderTest {
  readonly letters: DeadLetters;
  /** Absent where time can't be moved. */
  readonly advance?: (ms: number) => void;
  close(): Promise<void>;
}

export const aDeadLetter = (id: string, part: Partial<KeptDeadLetter> = {}): KeptDeadLetter => ({
  id,
  event: 'approval.requested',
  approvalId: 'a',
  at: Date.UTC(2026, 0, 1),
  attempts: 3,
  problem: 'status 500',
  body: `{"id":"${id}","text":"ä\u202e"}`,
  ...part,
});

/** What every place of dead letters promises. */
export const deadLettersSuite = (
  name: string,
  make: () => Promise<DeadLettersUnderTest>,
  timeMoves = true,
): void => {
  describe(`DeadLetters: ${name}`, () => {
    let under: DeadLettersUnderTest;
    beforeEach(async () => {
      under = await make();
    });
    afterEach(() => under.close());
    const idsOf = async (receiver: string): Promise<readonly string[]> =>
      (await under.letters.of(receiver)).map(({ id }) => id);

    it('are stored per receiver, once each, until they are deleted', async () => {
      const { letters } = under;
      await letters.keep('one', aDeadLetter('a'));
      await letters.keep('other', aDeadLetter('b'));
      await letters.keep('one', aDeadLetter('a', { attempts: 9 }));

      expect(await letters.of('one')).to.deep.equal([aDeadLetter('a', { attempts: 9 })]);
      await letters.forget('one', 'a');
      await letters.forget('one', 'a');
      expect(await idsOf('one')).to.deep.equal([]);
      expect(await idsOf('other')).to.deep.equal(['b']);
      expect(await idsOf('nobody')).to.deep.equal([]);
    });

    it('of one receiver are its latest, newest first', async function () {
      const { letters, advance } = under;
      await letters.keep('other', aDeadLetter('b'));
      for (let n = 0; n < MAX_DEAD_LETTERS + 5; n++) {
        await letters.keep('one', aDeadLetter(`n-${String(n).padStart(4, '0')}`));
        advance?.(1);
      }
      const ids = await idsOf('one');

      expect(ids).to.have.length(MAX_DEAD_LETTERS);
      expect(ids).to.deep.equal(ids.toSorted((a, b) => (a < b ? 1 : -1)));
      expect(ids[0]).to.equal(`n-0${MAX_DEAD_LETTERS + 4}`);
      expect(await idsOf('other')).to.deep.equal(['b']);
    });

    // nobody moves the time of Redis
    if (!timeMoves) return;
    it('expire after a week', async () => {
      const { letters, advance = () => undefined } = under;
      await letters.keep('one', aDeadLetter('a'));
      advance(DEAD_LETTER_MS - 1);
      expect(await idsOf('one')).to.deep.equal(['a']);
      advance(1);
      expect(await idsOf('one')).to.deep.equal([]);
    });
  });
};
