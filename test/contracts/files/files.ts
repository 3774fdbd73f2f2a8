import { expect } from 'chai';
import { archives } from './archives.ts';
import { listing } from './listing.ts';
import { names } from './names.ts';
import { Place, type FilesUnderTest } from './place.ts';
import { reading } from './reading.ts';
import { watching } from './watching.ts';
import { writing } from './writing.ts';

/** What every driver's files do (src/contracts/files.ts). `begin` is called once for all tests. */
export const filesSuite = (
  name: string,
  begin: () => Promise<FilesUnderTest & { readonly close: () => Promise<void> }>,
): void => {
  describe(`file access in a sandbox: ${name}`, function () {
    let opened: Awaited<ReturnType<typeof begin>>;
    before(async () => {
      opened = await begin();
    });
    after(async () => {
      await opened.close();
    });
    let counter = 0;
    /** Each test has a folder of its own. */
    const place = async (): Promise<Place> => {
      counter += 1;
      const folder = `${opened.folder}/${counter}`;
      await opened.sh(`rm -rf ${opened.folder}/*; mkdir ${folder}`);
      return new Place({ ...opened, folder });
    };

    it('reports that it supports files', () => {
      expect(opened.files.provided).to.equal(true);
    });
    reading(place);
    writing(place);
    names(place);
    listing(place);
    watching(place);
    describe('as archives', () => {
      archives(place);
    });
  });
};
