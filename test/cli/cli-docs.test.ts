import { expect } from 'chai';
import { cliPage, cliPageIsFresh } from '../../script/cli-docs.ts';

describe('docs/command-line.md', () => {
  it('is what the commands say (npx tsx script/cli-docs.ts writes it)', async () => {
    expect(await cliPageIsFresh()).to.equal(true);
  });

  it('has every command with its usage and examples', async () => {
    const page = await cliPage();
    for (const usage of [
      'sandpool run [options] [command...]',
      'sandpool pools update [options] [pool]',
      'sandpool config check [options] [file]',
    ])
      expect(page).to.include(`Usage: ${usage}`);
    expect(page.match(/^Examples:$/gm)?.length).to.equal(page.match(/^Usage: /gm)?.length);
  });
});
