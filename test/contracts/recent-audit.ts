import { expect } from 'chai';
import { type RecentAudit, RECENT_AUDIT_LINES } from '../../src/contracts/audit.ts';
import { eventually } from '../support/harness/eventually.ts';

/** What every place of the audit's last lines promises. */
export const recentAuditSuite = (
  name: string,
  make: () => Promise<{ readonly recent: RecentAudit; close(): Promise<void> }>,
): void => {
  describe(`RecentAudit: ${name}`, () => {
    let under: Awaited<ReturnType<typeof make>>;
    beforeEach(async () => {
      under = await make();
    });
    afterEach(() => under.close());

    const linesOf = async (cursor?: string, most = 10): Promise<readonly string[]> =>
      (await under.recent.before(cursor, most)).map(({ line }) => line);
    const shows = (line: string): Promise<void> =>
      eventually(async () => (await linesOf(undefined, 1))[0] === line, `${line} is the last`);

    it('is empty at first', async () => {
      expect(await linesOf()).to.deep.equal([]);
    });

    it('returns the last lines, newest first, and then the lines before them', async () => {
      under.recent.add(['{"a":1}', '{"b":"ä"}']);
      under.recent.add(['{"c":3}']);
      await shows('{"c":3}');

      expect(await linesOf()).to.deep.equal(['{"c":3}', '{"b":"ä"}', '{"a":1}']);
      const [last] = await under.recent.before(undefined, 1);
      expect(await linesOf(last?.cursor, 1)).to.deep.equal(['{"b":"ä"}']);
      const [, , first] = await under.recent.before(undefined, 3);
      expect(await linesOf(first?.cursor)).to.deep.equal([]);
    });

    it('keeps a bounded number of lines', async () => {
      const total = 2 * RECENT_AUDIT_LINES + 10;
      for (let from = 0; from < total; from += 500)
        under.recent.add(
          Array.from({ length: Math.min(500, total - from) }, (_, at) => `line ${from + at}`),
        );
      await shows(`line ${total - 1}`);

      const all = await linesOf(undefined, total);
      expect([all.length, all.at(-1)]).to.deep.equal([
        RECENT_AUDIT_LINES,
        `line ${total - RECENT_AUDIT_LINES}`,
      ]);
    });

    it('returns nothing before an unknown line', async () => {
      under.recent.add(['{"a":1}']);
      await shows('{"a":1}');

      for (const cursor of ['0', '0-0', '0-1'])
        expect(await linesOf(cursor), cursor).to.deep.equal([]);
    });
  });
};
