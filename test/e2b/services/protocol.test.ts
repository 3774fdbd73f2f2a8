import { expect } from 'chai';
import { firstLine, generatedFiles } from '../../../script/e2b-protocol.ts';

describe("what is made of the .proto files for E2B's SDKs", () => {
  it('is fresh (npx tsx script/e2b-protocol.ts)', () => {
    for (const { name, text } of generatedFiles())
      expect(text.startsWith(firstLine(name)), name).to.equal(true);
  });
});
