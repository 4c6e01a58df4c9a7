"""Programs that mwjax is measured against."""
